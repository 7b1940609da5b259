/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the running balancer share. */
#ifndef ISOBAR_PROCESS_PROCESS_INTERNAL_H
#define ISOBAR_PROCESS_PROCESS_INTERNAL_H

#include "control/control.h"
#include "document/document.h"
#include "health/health.h"
#include "metrics/recorder.h"
#include "process/decap.h"
#include "process/files.h"
#include "process/names.h"
#include "process/process.h"
#include "serve/thread.h"
#include "store/boot.h"
#include "upstream/departure.h"

#include <limits.h>

struct process {
    const struct process_source *source;
    uint32_t n_workers;
    struct worker **workers;       /* owns */
    struct control_worker *listed; /* owns: the same for the control pages */
    uint32_t n_joined;
    struct registry *registry;    /* owns */
    struct snapshot *current;     /* holds one reference */
    struct snapshot *prepared;    /* owns: built, not in force; NULL: none */
    struct departures departures; /* targets that leave */
    struct snapshot *retired;     /* list of those that workers may still use */
    uint64_t version;            /* of the current snapshot; counts what was built, not what was configured */
    struct snapshot_log *log;    /* the current one; the snapshots own it */
    struct health *health;       /* owns */
    struct shared_state *shared; /* owns; NULL: never asked for */
    struct control *control;     /* owns */
    struct document *document;   /* owns */
    struct recorder *recorder;   /* owns */
    struct names *names;         /* owns */
    struct decap *decap;         /* owns */
    struct control_view view;
    struct loop_timer reap_timer, join_timer, lame_duck_timer, successor_timer, expiry_timer, settle_timer;
    struct files_watch files;
    uint64_t settle_until_ns;
    bool is_patient;
    bool listens_anew; /* what is prepared has set the admin listener up */
    bool reads_files;  /* certificates and the like are read anew, also where their settings are the same */
    void (*published)(void *arg); /* of the publication under way; NULL: none */
    void *published_arg;
    struct stored *stored;     /* owns; NULL: there is no store */
    char executable[PATH_MAX]; /* that a successor is started from */
    pid_t successor;           /* 0: none */
};

/* process/apply.c: how a configuration comes into force. Threads: control. */
void apply_init(struct process *process);
/* The first configuration, when there are no workers and no health thread yet: binds and compiles. */
iso_err apply_build(struct process *process, struct config **config, struct snapshot **out,
                    struct iso_diag *diag) ISO_MUST_USE;
/* And puts it in force, waiting for first checks. */
void apply_first(struct process *process, struct snapshot *first);
/* Names have other addresses (names_new()). */
void apply_names(void *owner);
/* process/share.c: connects to the shared state that the snapshot asks for, before workers see it. */
void share_apply(struct process *process, struct snapshot *snapshot);
/* What the document calls. */
extern const struct document_hooks apply_hooks;
/* Forgets what is prepared, gives everything back that no worker uses. */
void apply_fini(struct process *process);
/* process/stored.c: the process and its store. Threads: control. */
struct stored;
struct stored_states;
/* Opens the store for good; what the start found in force is `boot`. */
iso_err stored_open(struct process *process, const struct store_boot *boot,
                    struct iso_diag *diag) ISO_MUST_USE;
void stored_close(struct process *process);
/* process/stored_states.c. The store answers before it is closed, so it is closed before this is freed. */
struct stored_states *stored_states_new(struct process *process, struct store *store);
void stored_states_free(struct stored_states **states);
/* What the document calls beside apply_hooks. */
void stored_add_hooks(struct document_hooks *hooks);
/* The file was read again: what becomes of it with a store. Makes `change` take the file's sections of this
 * node and, with file: wins, all of it. False: refused, with the reason in change->diag. */
bool stored_take_file(struct process *process, struct change *change, struct config_source *file);

void apply_free_snapshot(struct process *process, struct snapshot *snapshot);

#endif
