/* Public. The one clock: monotonic nanoseconds since an unspecified start. Tests put their own in
 * its place. */
#ifndef NW_BASE_CLOCK_H
#define NW_BASE_CLOCK_H

#include <stdint.h>

/* The only mutable global besides the last error. */
extern uint64_t (*nw_clock_ns)(void);

static inline uint64_t nw_now_ns(void)
{
    return nw_clock_ns();
}

/* Wall clock as "2026-11-30T03:12:45Z" (UTC); `text` holds at least 32 bytes. */
void nw_wall_clock_iso8601(char text[32]);

#endif
