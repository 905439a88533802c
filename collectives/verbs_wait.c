/* Waiting for completions: nobody waits for ever, and whoever gives up says why. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "collectives/verbs_parts.h"

enum {
    IDLES_A_LOOK = 16,            /* empty polls between looks at the clock */
    LOOK_FOR_EVENTS_NS = 1000000, /* a system call: not more often */
};

void nw_verbs_break(struct nw_verbs_end *end, const struct nw_verbs_word *why)
{
    end->broken = true;
    if (end->trouble == NULL)
        end->trouble = why;
}

nw_rc nw_verbs_fail_call(struct nw_verbs_end *end, int code, const char *what)
{
    nw_verbs_break(end, nw_verbs_refused_word());
    if (code == 0)
        return nw_fail_lib(NW_ELIB, "verbs", 0, "%s: %s", end->name, what);
    return nw_fail_lib(code == ENOMEM ? NW_ENOMEM : NW_ELIB, "verbs", code, "%s: %s: %s (%d)",
                       end->name, what, strerror(code), code);
}

/* `detail`: what the NIC said, for whoever looks it up. */
static nw_rc fail_word(struct nw_verbs_end *end, const struct nw_verbs_word *word, int code,
                       const char *detail)
{
    nw_verbs_break(end, word);
    return nw_fail_lib(strcmp(word->where, "here") == 0 ? NW_ELIB : NW_EPEER, "verbs", code,
                       "RDMA %s from %s to %s failed: %s (%s)%s%s%s%s",
                       nw_verbs_op_name(end->flow.run.op), end->link.here, end->link.there,
                       word->text, detail, word->cause[0] != '\0' ? ". Likely: " : "", word->cause,
                       word->remedy[0] != '\0' ? ". What to do: " : "", word->remedy);
}

/* --- events of the device --- */

static bool is_of(const struct nw_verbs_end *end, const struct ibv_async_event *event)
{
    if (event->event_type == IBV_EVENT_CQ_ERR)
        return event->element.cq == end->cq;
    for (int i = 0; i < end->qp_count; i++)
        if (event->element.qp == end->qps[i])
            return true;
    return false;
}

static void note_queue_event(struct nw_verbs_devices *devices, const struct ibv_async_event *event)
{
    for (struct nw_verbs_end *end = devices->ends; end != NULL; end = end->next)
        if (end->own_event < 0 && is_of(end, event))
            end->own_event = (int)event->event_type;
}

static void note_port_event(struct nw_verbs_seen *seen, enum ibv_event_type type)
{
    if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
        seen->down = type == IBV_EVENT_PORT_ERR;
    seen->lid_changes += type == IBV_EVENT_LID_CHANGE;
    seen->gid_changes += type == IBV_EVENT_GID_CHANGE;
}

static void note_event(struct nw_verbs_end *end, const struct ibv_async_event *event)
{
    struct nw_verbs_devices *devices = end->devices;

    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_DEVICE_FATAL:
        for (size_t i = 0; i < devices->count; i++) {
            struct nw_verbs_seen *seen = &devices->seen[i];

            if (devices->contexts[i] != end->context)
                continue;
            seen->fatal |= event->event_type == IBV_EVENT_DEVICE_FATAL;
            if (event->element.port_num == seen->number)
                note_port_event(seen, event->event_type);
        }
        break;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        note_queue_event(devices, event);
        break;
    default:
        break;
    }
}

/* Takes all events of the device that wait, whichever end's they are; what is bad for this one, or
 * -1. A port that came up again is not. */
static int look_for_events(struct nw_verbs_end *end)
{
    struct pollfd ready = {.fd = end->context->async_fd, .events = POLLIN};
    struct ibv_async_event event;

    while (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
        if (end->api->get_async_event(end->context, &event) != 0)
            break;
        note_event(end, &event);
        end->api->ack_async_event(&event);
    }
    if (end->seen->fatal)
        return IBV_EVENT_DEVICE_FATAL;
    return end->seen->down ? (int)IBV_EVENT_PORT_ERR : end->own_event;
}

/* What need not break a connection, and may be why it broke: "; before it …". */
static const char *changes(const struct nw_verbs_end *end, char text[160])
{
    const bool lid = end->mine.infiniband && end->seen->lid_changes != end->before.lid_changes;
    const bool gid = end->seen->gid_changes != end->before.gid_changes;

    text[0] = '\0';
    if (lid || gid)
        snprintf(text, 160, "; before it %s",
                 nw_verbs_event_word(lid ? IBV_EVENT_LID_CHANGE : IBV_EVENT_GID_CHANGE)->text);
    return text;
}

static nw_rc judge_events(struct nw_verbs_end *end)
{
    const int event = look_for_events(end);
    char detail[192];

    if (event < 0)
        return NW_OK;
    snprintf(detail, sizeof detail, "event %d on %s", event, end->link.here);
    return fail_word(end, nw_verbs_event_word(event), event, detail);
}

/* --- completions --- */

/* The error that a queue fails with comes first; what is flushed after it is its consequence. An
 * event says more than a status where the card or the cable is the cause. */
nw_rc nw_verbs_fail_completion(struct nw_verbs_end *end, const struct ibv_wc *wc)
{
    const int event = look_for_events(end);
    char detail[288], more[160];

    snprintf(detail, sizeof detail, "%s on this side, status %d, vendor's code 0x%x%s",
             (wc->wr_id & NW_VERBS_RECEIVE) != 0 ? "a receive" : "a request", wc->status,
             wc->vendor_err, changes(end, more));
    if (event >= 0)
        return fail_word(end, nw_verbs_event_word(event), event, detail);
    return fail_word(end, nw_verbs_status_word(wc->status), wc->status, detail);
}

/* --- waiting --- */

void nw_verbs_wait_start(struct nw_verbs_end *end)
{
    end->quiet_since_ns = end->events_looked_ns = nw_now_ns();
    end->idle = 0;
}

void nw_verbs_wait_moved(struct nw_verbs_end *end)
{
    end->idle = 0;
}

static nw_rc fail_deadline(struct nw_verbs_end *end, const char *what)
{
    const struct nw_verbs_word *word = nw_verbs_silent_word();
    char time[32], more[160];

    nw_verbs_break(end, word);
    return nw_fail(
        NW_ETIMEOUT,
        "RDMA %s from %s to %s: nothing has moved for %s while %s%s. Likely: %s. What to "
        "do: %s",
        nw_verbs_op_name(end->flow.run.op), end->link.here, end->link.there,
        nw_format_ns(time, end->wish.timeout_ns), what, changes(end, more), word->cause,
        word->remedy);
}

/* Until there is a completion, an event of the device, or no more time. */
static nw_rc sleep_for_event(struct nw_verbs_end *end, double left_ns)
{
    struct pollfd ready[2] = {{.fd = end->channel->fd, .events = POLLIN},
                              {.fd = end->context->async_fd, .events = POLLIN}};
    struct ibv_cq *cq;
    void *context;

    if (poll(ready, 2, left_ns > 0 ? (int)(left_ns / 1e6) + 1 : 0) < 0 && errno != EINTR)
        return nw_verbs_fail_call(end, errno, "waiting for a completion");
    if ((ready[0].revents & POLLIN) == 0)
        return NW_OK;
    if (end->api->get_cq_event(end->channel, &cq, &context) != 0)
        return nw_verbs_fail_call(end, errno, "waiting for a completion");
    end->api->ack_cq_events(cq, 1);
    const int code = ibv_req_notify_cq(end->cq, 0); /* an errno */
    return code == 0 ? NW_OK
                     : nw_verbs_fail_call(end, code, "a completion queue cannot be watched");
}

nw_rc nw_verbs_wait_idle(struct nw_verbs_end *end, const char *what)
{
    const bool look = end->idle++ % IDLES_A_LOOK == 0 || end->channel != NULL;
    uint64_t now = 0;

    if (look) {
        now = nw_now_ns();
        if (end->idle == 1)
            end->quiet_since_ns = now;
        if ((double)(now - end->quiet_since_ns) > end->wish.timeout_ns)
            return fail_deadline(end, what);
        if (now - end->events_looked_ns > LOOK_FOR_EVENTS_NS) {
            end->events_looked_ns = now;
            NW_TRY(judge_events(end));
        }
    }
    if (end->channel != NULL)
        return sleep_for_event(end, end->wish.timeout_ns - (double)(now - end->quiet_since_ns));
    if (!end->wish.spin)
        (void)sched_yield();
    return NW_OK;
}
