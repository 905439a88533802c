/* Public. Replacing what tells who a machine belongs to: the pieces of nw_topo_anonymise, for
 * results as well. Every replacement is a function of the key and of what it replaces, so equal
 * ones stay equal, in one file and in all files of one seed; without the key nobody can undo it or
 * try names out.
 *
 * anonymise_hash.c: numbers (GUIDs, MAC and IP addresses); anonymise_text.c: finds them in texts.
 */
#ifndef NW_TOPO_ANONYMISE_H
#define NW_TOPO_ANONYMISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nw_secrets;

struct nw_hash_key {
    uint64_t k0, k1;
};

/* From a seed; NULL: from the system's random numbers. */
struct nw_hash_key nw_hash_key_of(const char *seed);
/* SipHash-2-4 (Aumasson, Bernstein 2012). */
uint64_t nw_hash(const struct nw_hash_key *key, const void *data, size_t length);
/* The same of a text without regard to case; `kind` keeps equal texts of different kinds apart. */
uint64_t nw_hash_text(const struct nw_hash_key *key, const char *kind, const char *text);

/* A MAC address stays a unicast one; one as interface id (EUI-64, RFC 4291) is replaced as the
 * address it holds. */
uint64_t nw_anonymous_mac(const struct nw_hash_key *key, uint64_t mac);
uint64_t nw_anonymous_guid(const struct nw_hash_key *key, uint64_t guid);
/* Addresses that share their first n bits share n bits afterwards (the method of Crypto-PAn, Xu and
 * others 2002); loopback, link-local and private addresses stay such. */
uint32_t nw_anonymous_ipv4(const struct nw_hash_key *key, uint32_t address);
void nw_anonymous_ipv6(const struct nw_hash_key *key, uint8_t address[16]);

/* Digits become digits, letters letters, the rest stays. In place. */
void nw_scramble(const struct nw_hash_key *key, const char *kind, char *text);

enum {                        /* what a text may hold beside known names */
       NW_TEXT_ADDRESSES = 1, /* MAC, IP, GUID, UUID, ids in hexadecimal digits */
       NW_TEXT_PATHS =
           2,           /* files, mounts, control groups, accounts, names of hosts with their domain
                         */
       NW_TEXT_IDS = 4, /* the addresses that no version looks like: all but IPv4 */
};

/* Names that are secret wherever they stand as a word. */
struct nw_name {
    char *text, *replacement; /* owned */
    size_t length;
};
struct nw_names {
    struct nw_name *items;
    size_t count, capacity;
    size_t first[257]; /* by first byte in lower case, once sorted */
    struct nw_hash_key key;
};

/* Texts of one letter, and those that are there, are passed over. */
nw_rc nw_hidden_add(struct nw_names *names, const char *text, const char *replacement);
void nw_hidden_sort(struct nw_names *names); /* behind the last one, before any text is looked at */
void nw_hidden_free(struct nw_names *names);

/* A copy of `text` without what is secret; free it. NULL: out of memory. */
char *nw_anonymous_text(const struct nw_names *names, const char *text, unsigned holds);

#endif
