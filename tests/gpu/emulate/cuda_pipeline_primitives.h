// Asynchronous copies that happen as late as they may: when the thread waits for their group. So a
// kernel that reads too early, or waits for too few groups, computes garbage.
#pragma once

#include <string.h>

inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes)
{
    if ((bytes != 4 && bytes != 8 && bytes != 16) || (uintptr_t)to % bytes ||
        (uintptr_t)from % bytes)
        emulator_fault("asynchronous copy of a wrong size or alignment");
    emulator_pipeline &p = emulator_this_pipeline();
    p.copies.push_back({to, from, bytes, p.committed});
}
inline void __pipeline_commit()
{
    emulator_this_pipeline().committed++;
}
// Until all but the last `prior` groups are done.
inline void __pipeline_wait_prior(size_t prior)
{
    emulator_pipeline &p = emulator_this_pipeline();
    while (!p.copies.empty() && p.copies.front().group + prior < p.committed) {
        const emulator_pipeline::copy &c = p.copies.front();
        memcpy(c.to, c.from, c.bytes);
        p.copies.pop_front();
    }
}
