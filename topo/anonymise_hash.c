#include "topo/anonymise.h"

#include <ctype.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

uint64_t nw_hash(const struct nw_hash_key *key, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t v[4] = {key->k0 ^ UINT64_C(0x736f6d6570736575), key->k1 ^ UINT64_C(0x646f72616e646f6d),
                     key->k0 ^ UINT64_C(0x6c7967656e657261),
                     key->k1 ^ UINT64_C(0x7465646279746573)};
    uint64_t word = 0;

    for (size_t i = 0; i <= length; i++) {
        const bool end = i == length;

        if (end)
            word |= (uint64_t)length << 56;
        else
            word |= (uint64_t)bytes[i] << 8 * (i % 8);
        if (!end && i % 8 != 7)
            continue;
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
        word = 0;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct nw_hash_key nw_hash_key_of(const char *seed)
{
    static const struct nw_hash_key first = {0, 0}, second = {1, 0};
    struct nw_hash_key key;

    if (seed != NULL)
        return (struct nw_hash_key){nw_hash(&first, seed, strlen(seed)),
                                    nw_hash(&second, seed, strlen(seed))};
    if (getrandom(&key, sizeof key, 0) == (ssize_t)sizeof key)
        return key;
    struct { /* no random numbers here: what differs from run to run */
        struct timespec now;
        pid_t pid;
    } run;

    memset(&run, 0, sizeof run);
    clock_gettime(CLOCK_REALTIME, &run.now);
    run.pid = getpid();
    return (struct nw_hash_key){nw_hash(&first, &run, sizeof run),
                                nw_hash(&second, &run, sizeof run)};
}

uint64_t nw_hash_text(const struct nw_hash_key *key, const char *kind, const char *text)
{
    struct nw_hash_key own = {nw_hash(key, kind, strlen(kind)), key->k1};
    uint64_t hash = 0;

    for (;; text++) {
        const unsigned char byte = (unsigned char)tolower((unsigned char)*text);

        hash = nw_hash(&own, (const unsigned char[]){byte}, 1) ^ own.k0;
        if (byte == '\0')
            return hash;
        own.k0 = rotate(hash, 7); /* chained: the place of a letter counts */
    }
}

enum { KIND_GUID = 1, KIND_MAC, KIND_IPV4, KIND_IPV6 };

static uint64_t number_hash(const struct nw_hash_key *key, uint64_t kind, uint64_t number)
{
    const uint64_t words[2] = {kind, number};

    return nw_hash(key, words, sizeof words);
}

uint64_t nw_anonymous_mac(const struct nw_hash_key *key, uint64_t mac)
{
    /* bit 40: multicast; 41: locally administered */
    const uint64_t keep = UINT64_C(1) << 40, local = UINT64_C(1) << 41;
    const uint64_t hash = number_hash(key, KIND_MAC, mac) & UINT64_C(0xffffffffffff);

    if (mac == 0 || mac == UINT64_C(0xffffffffffff))
        return mac;
    return (hash & ~(keep | local)) | (mac & keep) | local;
}

uint64_t nw_anonymous_guid(const struct nw_hash_key *key, uint64_t guid)
{
    const uint64_t local = UINT64_C(0x0200000000000000);

    if (guid <= 1)
        return guid;                       /* none; ::1 */
    if ((guid >> 24 & 0xffff) == 0xfffe) { /* MAC with ff:fe in the middle, local bit turned over */
        const uint64_t turned = guid ^ local;
        const uint64_t mac = nw_anonymous_mac(key, (turned >> 40) << 24 | (turned & 0xffffff));

        return ((mac >> 24) << 40 | UINT64_C(0xfffe) << 24 | (mac & 0xffffff)) ^ local;
    }
    return number_hash(key, KIND_GUID, guid);
}

/* Each bit turned over or not by all bits before it, but not those that lead to a special network.
 */
static uint64_t prefix_hash(const struct nw_hash_key *key, uint64_t kind, uint64_t number, int bits,
                            bool (*leads_on)(uint64_t prefix, int length))
{
    uint64_t result = number;

    for (int i = 0; i < bits; i++) {
        const uint64_t before = i == 0 ? 0 : number >> (bits - i);

        if (!leads_on(before, i))
            result ^= (number_hash(key, kind << 8 | (uint64_t)i, before) & 1) << (bits - 1 - i);
    }
    return result;
}

/* Networks that mean something: their addresses stay in them, and no others get into them. */
static bool leads_to_special(uint64_t prefix, int length)
{
    static const struct {
        uint32_t network;
        int bits;
    } special[] = {
        {0x00000000, 8},  /* "any" */
        {0x0a000000, 8},  /* RFC 1918 */
        {0x64400000, 10}, /* RFC 6598 */
        {0x7f000000, 8},  /* loopback */
        {0xa9fe0000, 16}, /* link-local, RFC 3927 */
        {0xac100000, 12}, /* RFC 1918 */
        {0xc0a80000, 16}, /* RFC 1918 */
        {0xff000000, 8},  /* broadcast, masks */
    };

    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (length < special[i].bits &&
            (length == 0 || special[i].network >> (32 - length) == prefix))
            return true;
    return false;
}

uint32_t nw_anonymous_ipv4(const struct nw_hash_key *key, uint32_t address)
{
    const uint32_t network = address >> 24;

    if (network == 0 || network == 0x7f || network == 0xff)
        return address;
    return (uint32_t)prefix_hash(key, KIND_IPV4, address, 32, leads_to_special);
}

/* 2001::/16, fd00::/16 and the like say what kind of address it is. */
static bool is_first_group(uint64_t prefix, int length)
{
    (void)prefix;
    return length < 16;
}

static uint64_t load(const uint8_t *bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static void store(uint8_t *bytes, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (uint8_t)value;
}

void nw_anonymous_ipv6(const struct nw_hash_key *key, uint8_t address[16])
{
    const uint64_t network = load(address), interface = load(address + 8);

    if (network == 0 && interface >> 32 == 0xffff) { /* IPv4 in IPv6 */
        store(address + 8, interface >> 32 << 32 | nw_anonymous_ipv4(key, (uint32_t)interface));
        return;
    }
    if (network >> 54 != 0xfe80 >> 6 && network != 0) /* not link-local */
        store(address, prefix_hash(key, KIND_IPV6, network, 64, is_first_group));
    store(address + 8, nw_anonymous_guid(key, interface));
}

void nw_scramble(const struct nw_hash_key *key, const char *kind, char *text)
{
    uint64_t hash = nw_hash_text(key, kind, text);

    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;

        hash = nw_hash(key, &hash, sizeof hash);
        if (isdigit(byte))
            *text = (char)('0' + hash % 10);
        else if (isupper(byte))
            *text = (char)('A' + hash % 26);
        else if (islower(byte) || byte >= 0x80)
            *text = (char)('a' + hash % 26);
    }
}
