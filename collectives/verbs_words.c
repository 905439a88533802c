/* Statuses and events in words. The numbers are those of infiniband/verbs.h, which never change;
 * tests hold them against the header where there is one. What they mean: InfiniBand Architecture
 * Specification 1, 11.6.2 (completion return status) and 11.6.3 (asynchronous events). */
#include "collectives/verbs.h"

#define RAISE_LOG "look for the driver's message in the kernel log (dmesg)"

static const struct nw_verbs_word statuses[] = {
    [0] = {"success", "here", "done", "", ""},
    [1] = {"local-length", "here",
           "a message is longer than what was made ready for it (local length error)",
           "the two sides run with different message sizes",
           "give both sides the same sizes; is it the same version of the program on both nodes?"},
    [2] = {"local-qp", "here", "the NIC refused a request (local QP operation error)",
           "the queue was set up with values that this NIC does not take", RAISE_LOG},
    [3] = {"local-eec", "here", "local EE context operation error",
           "an error of reliable datagrams, which are not used here", RAISE_LOG},
    [4] = {"local-protection", "here",
           "the NIC may not touch the memory of a request (local protection error)",
           "the buffer is not registered any more: with GPU memory, nvidia_peermem or dma-buf took "
           "it away",
           "try host memory; with a GPU, look in the kernel log for nvidia_peermem"},
    [5] = {"flushed", "here", "a request was thrown away (flushed)",
           "the connection broke before: this is the consequence, not the cause", ""},
    [6] = {"memory-window", "here", "memory window bind error",
           "an error of memory windows, which are not used here", RAISE_LOG},
    [7] = {"bad-response", "there", "an answer that makes no sense (bad response error)",
           "a faulty NIC or firmware on one side, or packets damaged on the way",
           "compare firmware of both NICs; look at the error counters of both ports"},
    [8] = {"local-access", "here",
           "the other side's data may not be stored here (local access "
           "error)",
           "the buffer on this side is too small or no longer registered",
           "is it the same version of the program on both nodes?"},
    [9] = {"remote-invalid", "there",
           "the other side refuses the request (remote invalid request error)",
           "the message is longer than what the other side has made ready, or an operation that it "
           "does not serve",
           "give both sides the same sizes; is it the same version of the program on both nodes?"},
    [10] = {"remote-access", "there",
            "the other side refuses access to its memory (remote access error)",
            "the address or key of its buffer is not valid there: it was closed, or the address "
            "reached another process",
            "is it the same version of the program on both nodes; is a GID used by two NICs?"},
    [11] = {"remote-operation", "there",
            "the other side could not carry the request out (remote operation error)",
            "its queue failed at the same time: its own message says why",
            "look at the message of the other side; on a slow host raise the ACK timeout"},
    [12] =
        {"retry-exceeded", "between",
         "no acknowledgement in spite of all retries (transport retry counter exceeded)",
         "the other side is gone, its port is down, or packets do not arrive: a GID of another "
         "network or RoCE version, an MTU larger than the switches pass, a firewall on UDP port "
         "4791, lost packets without flow control (PFC)",
         "is the other side still running? Then ping it from this interface with the packet size "
         "of the RDMA MTU (ping -M do -s SIZE -I INTERFACE), try another GID index (--gid) or "
         "a smaller MTU (--mtu), and look at both ports' discard and error counters"},
    [13] = {"rnr-exceeded", "there",
            "the other side had nothing ready to receive (RNR retry counter exceeded)",
            "the receiver is too slow or has stopped",
            "look at the message of the other side; is its CPU shared with another rank?"},
    [14] = {"local-rdd", "here", "local RDD violation",
            "an error of reliable datagrams, which are not used here", RAISE_LOG},
    [15] = {"remote-rd", "there", "remote invalid RD request",
            "an error of reliable datagrams, which are not used here", RAISE_LOG},
    [16] = {"aborted", "there", "the other side aborted the operation (aborted error)",
            "its queue was closed in the middle", "look at the message of the other side"},
    [17] = {"eec-number", "here", "invalid EE context number",
            "an error of reliable datagrams, which are not used here", RAISE_LOG},
    [18] = {"eec-state", "here", "invalid EE context state",
            "an error of reliable datagrams, which are not used here", RAISE_LOG},
    [19] = {"fatal", "here", "the NIC has failed (fatal error)",
            "hardware or firmware of the NIC, or its PCIe link",
            "look in the kernel log for the NIC's driver and PCIe (AER) errors; reset the NIC"},
    [20] = {"response-timeout", "between", "no response in time (response timeout error)",
            "the other side is gone or packets do not arrive",
            "is the other side still running? Look at both ports' error counters"},
    [21] = {"general", "here", "the NIC reports a general error", "the driver does not say more",
            RAISE_LOG},
    [22] = {"tag-matching", "here", "tag matching error", "tag matching is not used here",
            RAISE_LOG},
    [23] = {"tag-rendezvous", "here", "tag matching rendezvous incomplete",
            "tag matching is not used here", RAISE_LOG},
};

static const struct nw_verbs_word events[] = {
    [0] = {"cq-error", "here", "the completion queue overflowed or failed",
           "more completions than "
           "places, or the NIC",
           "use fewer queue pairs or less depth"},
    [1] = {"qp-fatal", "here", "the NIC gave a queue pair up", "hardware or firmware", RAISE_LOG},
    [2] = {"qp-request", "there", "the other side sent a request that is not allowed",
           "the two sides do not agree on the queue",
           "is it the same version of the program on both "
           "nodes?"},
    [3] = {"qp-access", "there", "the other side asked for memory that it may not touch",
           "address or key of another buffer",
           "is it the same version of the program on both nodes; is a GID used by two NICs?"},
    [4] = {"established", "here", "the connection has carried data", "", ""},
    [5] = {"drained", "here", "the send queue has run empty", "", ""},
    [6] = {"path-migrated", "between", "the connection has moved to its other path", "", ""},
    [7] = {"path-migration-error", "between", "the connection could not move to its other path", "",
           ""},
    [8] = {"device-fatal", "here", "the NIC has failed",
           "hardware or firmware of the NIC, or its PCIe link: the driver resets it",
           "look in the kernel log for the NIC's driver and PCIe (AER) errors"},
    [9] = {"port-active", "here", "the port came up", "", ""},
    [10] = {"port-error", "here", "the port went down",
            "cable, transceiver or switch port, or somebody took the interface down",
            "look at the port (ibstat, ip link, ethtool) and at its link error counters"},
    [11] = {"lid-change", "here", "the subnet manager gave the port another address (LID)",
            "the subnet manager restarted", "start the run again"},
    [12] = {"pkey-change", "here", "the subnet manager changed the port's partitions",
            "the port was taken out of a partition", "ask who runs the fabric"},
    [13] = {"sm-change", "between", "another subnet manager took over", "", ""},
    [14] = {"srq-error", "here", "shared receive queue error", "", RAISE_LOG},
    [15] = {"srq-limit", "here", "shared receive queue limit reached", "", ""},
    [16] = {"last-request", "here", "the queue pair has seen its last request", "", ""},
    [17] = {"client-reregister", "here", "the subnet manager wants the port to register again", "",
            ""},
    [18] = {"gid-change", "here", "the port's addresses (GIDs) changed",
            "somebody changed the interface's IP addresses", "start the run again"},
    [19] = {"wq-fatal", "here", "the NIC gave a work queue up", "hardware or firmware", RAISE_LOG},
};

static const struct nw_verbs_word unknown = {
    "unknown", "unknown", "the NIC reports an error that this program does not know",
    "the driver is newer than this program", RAISE_LOG};

static const struct nw_verbs_word *row(const struct nw_verbs_word *rows, size_t count, int index)
{
    return index >= 0 && (size_t)index < count ? &rows[index] : &unknown;
}

const struct nw_verbs_word *nw_verbs_status_word(int status)
{
    return row(statuses, sizeof statuses / sizeof *statuses, status);
}

const struct nw_verbs_word *nw_verbs_silent_word(void)
{
    static const struct nw_verbs_word word = {
        "silent", "between", "nothing has moved for too long",
        "the other side has stopped, or packets do not arrive",
        "look at the other side's message, at both ports' counters, and at the GID index and MTU "
        "in use"};

    return &word;
}

const struct nw_verbs_word *nw_verbs_refused_word(void)
{
    static const struct nw_verbs_word word = {
        "refused", "here", "the library or the driver refused a call",
        "the NIC has no more of what was asked for, or its driver does not take it", RAISE_LOG};

    return &word;
}

const struct nw_verbs_word *nw_verbs_event_word(int event)
{
    return row(events, sizeof events / sizeof *events, event);
}
