/* Private to kernels/. NW_CLONES before a function: compiled for AVX-512, AVX2 and the baseline,
 * chosen when the program is loaded. Not under sanitizers, whose runtimes are not up yet when the
 * choice is made.
 */
#ifndef NW_KERNELS_CLONES_H
#define NW_KERNELS_CLONES_H

#if defined __x86_64__ && defined __gnu_linux__ && defined __GNUC__ && !defined __clang__ &&       \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define NW_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NW_CLONES
#endif

#endif
