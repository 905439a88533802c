/* Private to tests/fake/. Time, in picoseconds, so that a model's fractions of a ns add up exactly.
 *
 * FAKE_CLOCK=virtual (default): the host's time is that of this process's calls: each launch costs
 * a fixed time, and whoever waits for a stream is afterwards where the stream was. Nothing depends
 * on how fast this machine is. FAKE_CLOCK=real: the monotonic clock; work lasts as long as the
 * model says.
 *
 * Every process has a time of its own. Making a communicator and every collective bring those of
 * its ranks together, as far as they wait for each other.
 */
#ifndef NW_TESTS_FAKE_CLOCK_H
#define NW_TESTS_FAKE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* What the NCCL double uses of the CUDA double; all else is hidden in its library. */
#define FK_EXPORT __attribute__((visibility("default")))

#define FK_PS_PER_NS 1000
#define FK_PS_PER_US 1000000

FK_EXPORT bool fk_clock_is_real(void);
FK_EXPORT int64_t fk_host_ps(void);
/* A call that costs the host `us`; returns the time after it, at which its work is queued. */
FK_EXPORT int64_t fk_host_spend(double us);
/* The host has waited for something that happened at `ps`. */
FK_EXPORT void fk_host_reach(int64_t ps);
/* When a gate that is found open opened: when the host last queued something. */
int64_t fk_gate_ps(void);
/* Real clock: sleeps until `ps`, and returns when that really was; virtual: returns ps. */
FK_EXPORT int64_t fk_until(int64_t ps);
/* Something moved: fk_now() does not take over. */
FK_EXPORT void fk_progress(void);

/* Memory that the processes of a job share; zeroed at first. */
#define FK_JOB_BYTES 8192
void *fk_job_memory(void);
/* True for the first caller in the job. */
bool fk_job_first(void);
/* $FAKE_DIR, or "/dev/shm": where the doubles' shared files are; the prefix of their names. */
FK_EXPORT const char *fk_job_folder(void);
FK_EXPORT const char *fk_job_prefix(void);

/* Exported by libcuda: the host's time in ns, for the program's clock. Where nothing has moved for
 * FAKE_STALL_MS (3000) of real time, as when a collective hangs, it goes on at the real rate, so
 * that deadlines pass. */
FK_EXPORT uint64_t fk_now(void);

#endif
