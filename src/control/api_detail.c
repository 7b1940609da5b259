/* SPDX-License-Identifier: Apache-2.0 */
#include "control/api_detail.h"

#include "control/handlers.h"

#define GROUP  "target_group:string"
#define SERVER "weight:integer enabled:boolean backup:boolean metadata:object"
#define CHANGE "400 404 409 413 415 422 503"

static const struct api_detail details[] = {
    {page_api_health, 200, GROUP, NULL, "404 503"},
    {api_metrics, 200, GROUP " history:boolean", NULL, "404"},
    {api_config_get, 200, GROUP, NULL, "404"},
    {api_config_algorithm, 200, GROUP, "algorithm!:string", CHANGE},
    {api_config_health, 200, GROUP,
     "type:string path:string interval_seconds:number timeout_seconds:number unhealthy_threshold:integer "
     "healthy_threshold:integer",
     CHANGE},
    {api_servers_list, 200, GROUP " status:string tags:string limit:integer cursor:string", NULL, "400 404"},
    {api_servers_get, 200, GROUP, NULL, ""},
    {api_servers_add, 201, GROUP, "address!:string " SERVER, CHANGE},
    {api_servers_put, 200, GROUP, "address:string " SERVER, CHANGE},
    {api_servers_remove, 202, GROUP, NULL, "409 503"},
    {api_sessions_find, 200, GROUP " client_ip:string session_id:string", NULL, "400 404 503"},
    {api_sessions_end, 204, GROUP, NULL, ""},
    {v1_explain_get, 200, "url:string method:string from:string via:string listener:string text:boolean",
     NULL, "400"},
    {v1_explain_post, 200, "text:boolean",
     "url!:string method:string headers:object from:string via:string listener:string", "400 413 415 503"},
};

const struct api_detail *api_detail_find(api_handler *handler)
{
    for (size_t i = 0; i < iso_countof(details); i++)
        if (details[i].handler == handler)
            return &details[i];
    return NULL;
}

bool api_detail_next(const char **list, struct slice *name, struct slice *type, bool *is_required)
{
    struct slice rest = slice_str(*list), one;
    if (rest.len == 0 || !slice_next(&rest, ' ', &one))
        return false;
    *list += one.len + (rest.ptr ? 1 : 0);
    *type = one;
    slice_next(type, ':', name);
    *is_required = name->len && name->ptr[name->len - 1] == '!';
    name->len -= *is_required;
    return true;
}
