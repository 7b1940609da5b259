/* SPDX-License-Identifier: Apache-2.0 */
#include "control/control.h"

#include "control/admin.h"
#include "control/handlers.h"
#include "core/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct control {
    struct loop loop;
    struct loop_io signals;
    struct control_callbacks callbacks;
    struct admin *admin; /* owns */
};

static void take_signal(const struct control *control, uint32_t signal)
{
    const struct control_callbacks *callbacks = &control->callbacks;
    switch (signal) {
    case SIGHUP:
        callbacks->on_reload(callbacks->owner);
        break;
    case SIGUSR1:
        callbacks->on_reopen(callbacks->owner);
        break;
    case SIGUSR2:
        callbacks->on_upgrade(callbacks->owner);
        break;
    case SIGTERM:
    case SIGINT:
        callbacks->on_shutdown(callbacks->owner);
        break;
    }
}

static void on_signal(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct control *control = container_of(io, struct control, signals);
    struct signalfd_siginfo info;
    while (read(io->fd, &info, sizeof(info)) == sizeof(info))
        take_signal(control, info.ssi_signo);
}

iso_err control_open(const struct control_callbacks *callbacks, const struct control_view *view,
                     struct control **out)
{
    struct control *control = calloc(1, sizeof(*control));
    iso_assert(control != NULL);
    control->callbacks = *callbacks;
    control->signals = (struct loop_io){.fd = -1, .on_ready = on_signal};
    if (loop_init(&control->loop)) {
        free(control);
        return ISO_ERR_SYSTEM;
    }
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGHUP);
    sigaddset(&taken, SIGUSR1);
    sigaddset(&taken, SIGUSR2);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    signal(SIGPIPE, SIG_IGN);
    control->signals.fd = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
    if (control->signals.fd < 0 || loop_arm_events(&control->loop, &control->signals, EPOLLIN | EPOLLET)) {
        log_error("cannot take signals: %m");
        loop_close(&control->loop, &control->signals);
        loop_fini(&control->loop);
        free(control);
        return ISO_ERR_SYSTEM;
    }
    control->admin = admin_new(&control->loop, view);
    *out = control;
    return ISO_OK;
}

iso_err control_listen(struct control *control, const struct config_admin *config, struct iso_diag *diag)
{
    return admin_listen(control->admin, config, diag);
}

void control_set_document(struct control *control, struct document *document)
{
    admin_set_document(control->admin, document);
}

bool control_is_tls(const struct control *control)
{
    return admin_is_tls(control->admin);
}

const char *control_endpoint(const struct control *control)
{
    return admin_endpoint(control->admin);
}

void control_run(struct control *control)
{
    loop_run(&control->loop);
}

void control_stop(struct control *control)
{
    loop_stop(&control->loop);
}

struct loop *control_loop(struct control *control)
{
    return &control->loop;
}

void control_close(struct control **taken)
{
    struct control *control = *taken;
    *taken = NULL;
    if (!control)
        return;
    v1_explain_stop(&control->loop);
    admin_free(&control->admin);
    loop_close(&control->loop, &control->signals);
    loop_fini(&control->loop);
    free(control);
}
