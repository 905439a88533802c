/* Finds addresses, ids, paths and known names in a text and writes it without them. */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/anonymise.h"

/* Where a text is read; a matcher writes the replacement and returns how much it took, 0: no. */
struct reading {
    const struct nw_names *names;
    const char *start;
    FILE *out;
    unsigned holds;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* --- known names --- */

static size_t match_name(const struct reading *reading, const char *at)
{
    const struct nw_name *best = NULL;

    const int byte = tolower((unsigned char)*at);

    for (size_t i = reading->names->first[byte]; i < reading->names->first[byte + 1]; i++) {
        const struct nw_name *name = &reading->names->items[i];

        if ((best == NULL || name->length > best->length) &&
            strncasecmp(at, name->text, name->length) == 0 &&
            !(is_word(name->text[name->length - 1]) && is_word(at[name->length])))
            best = name;
    }
    if (best == NULL)
        return 0;
    fputs(best->replacement, reading->out);
    return best->length;
}

/* --- UUIDs --- */

static size_t hex_run(const char *text)
{
    size_t length = 0;

    while (isxdigit((unsigned char)text[length]))
        length++;
    return length;
}

/* 8-4-4-4-12 digits; a control group has "pod" before them. */
static size_t match_uuid(const struct reading *reading, const char *at)
{
    const size_t prefix = strncmp(at, "pod", 3) == 0 ? 3 : 0;
    static const size_t parts[] = {8, 4, 4, 4, 12};
    char text[37], digits[33];
    size_t length = prefix, count = 0;

    for (size_t i = 0; i < 5; i++) {
        if (hex_run(at + length) != parts[i])
            return 0;
        memcpy(digits + count, at + length, parts[i]);
        count += parts[i];
        length += parts[i];
        if (i < 4 && at[length] != '-' && at[length] != '_')
            return 0;
        length += i < 4;
    }
    if (is_word(at[length]))
        return 0;
    digits[32] = '\0';
    const uint64_t high = nw_hash_text(&reading->names->key, "uuid", digits);
    const uint64_t low = nw_hash_text(&reading->names->key, "uuid, second half", digits);

    snprintf(text, sizeof text,
             "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
             high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
    fprintf(reading->out, "%.*s%s", (int)prefix, at, text);
    return length;
}

/* --- groups of hexadecimal digits --- */

enum { MAX_GROUPS = 20 };

struct groups {
    size_t start[MAX_GROUPS + 1], size[MAX_GROUPS + 1];
    size_t count, length;
    bool pairs, fours;
};

static bool find_groups(const char *at, char separator, struct groups *groups)
{
    *groups = (struct groups){.pairs = true, .fours = true};
    for (;;) {
        const size_t size = hex_run(at + groups->length);

        if (size == 0 || size > 4 || groups->count > MAX_GROUPS - 1)
            return false;
        groups->start[groups->count] = groups->length;
        groups->size[groups->count++] = size;
        groups->pairs &= size == 2;
        groups->fours &= size == 4;
        groups->length += size;
        if (at[groups->length] != separator || hex_run(at + groups->length + 1) == 0)
            break;
        groups->length++;
    }
    return !is_word(at[groups->length]) && at[groups->length] != separator;
}

static uint64_t number_of(const char *at, const struct groups *groups, size_t first, size_t count)
{
    uint64_t value = 0;

    for (size_t i = first; i < first + count; i++)
        for (size_t k = 0; k < groups->size[i]; k++) {
            const char digit[2] = {at[groups->start[i] + k], '\0'};

            value = value << 4 | strtoul(digit, NULL, 16);
        }
    return value;
}

/* `digits` hexadecimal digits in the case and with the separators of `like`. */
static void write_like(FILE *out, const char *like, size_t length, uint64_t value, int digits)
{
    bool upper = false, lower = false;

    for (size_t i = 0; i < length; i++) {
        upper |= like[i] >= 'A' && like[i] <= 'F';
        lower |= like[i] >= 'a' && like[i] <= 'f';
    }
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)like[i]))
            fputc(like[i], out);
        else
            fputc((upper && !lower ? "0123456789ABCDEF"
                                   : "0123456789abcdef")[value >> 4 * --digits & 15],
                  out);
}

/* MAC and GUID: 6 or 8 pairs, 4 groups of 4; the 20 bytes of an IP-over-InfiniBand address end with
 * a GUID (RFC 4391). */
static size_t match_groups(const struct reading *reading, const char *at, char separator)
{
    const struct nw_hash_key *key = &reading->names->key;
    struct groups groups;

    if (!find_groups(at, separator, &groups))
        return 0;
    if (groups.pairs && groups.count == 6)
        write_like(reading->out, at, groups.length,
                   nw_anonymous_mac(key, number_of(at, &groups, 0, 6)), 12);
    else if ((groups.pairs && groups.count == 8) || (groups.fours && groups.count == 4))
        write_like(reading->out, at, groups.length,
                   nw_anonymous_guid(key, number_of(at, &groups, 0, groups.count)), 16);
    else if (groups.pairs && groups.count == 20) {
        fwrite(at, 1, groups.start[12], reading->out);
        write_like(reading->out, at + groups.start[12], groups.length - groups.start[12],
                   nw_anonymous_guid(key, number_of(at, &groups, 12, 8)), 16);
    } else
        return 0;
    return groups.length;
}

static size_t match_colons(const struct reading *reading, const char *at)
{
    return match_groups(reading, at, ':');
}

static size_t match_hyphens(const struct reading *reading, const char *at)
{
    return match_groups(reading, at, '-');
}

static size_t match_ipv6(const struct reading *reading, const char *at)
{
    char text[48];
    uint8_t address[16];
    const size_t length = strspn(at, "0123456789abcdefABCDEF:.");
    size_t end = length;

    while (end > 2 && (at[end - 1] == '.' || (at[end - 1] == ':' && at[end - 2] != ':')))
        end--; /* of the sentence */
    if (end < 3 || end >= sizeof text || is_word(at[end]))
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)end, at);
    if (inet_pton(AF_INET6, text, address) != 1)
        return 0;
    nw_anonymous_ipv6(&reading->names->key, address);
    if (strspn(text, "0123456789abcdefABCDEF:") == 39 && strstr(text, "::") == NULL) {
        for (int i = 0; i < 16; i += 2) /* a GID has all digits */
            fprintf(reading->out, "%s%02x%02x", i > 0 ? ":" : "", address[i], address[i + 1]);
        return end;
    }
    fputs(inet_ntop(AF_INET6, address, text, sizeof text), reading->out);
    return end;
}

static size_t match_ipv4(const struct reading *reading, const char *at)
{
    char text[20];
    struct in_addr address;
    const size_t length = strspn(at, "0123456789.");
    size_t end = length;

    while (end > 0 && at[end - 1] == '.')
        end--;
    if (end < 7 || end >= sizeof text || is_word(at[end]) ||
        (at[end] == '-' && is_word(at[end + 1])))
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)end, at);
    if (inet_pton(AF_INET, text, &address) != 1)
        return 0;
    address.s_addr = htonl(nw_anonymous_ipv4(&reading->names->key, ntohl(address.s_addr)));
    fputs(inet_ntop(AF_INET, &address, text, sizeof text), reading->out);
    return end;
}

/* "0xb83fd20300a1b2c4", a container's id, "enx001122334455": 12 digits and more, with a letter and
 * a digit or behind 0x, so that amounts stay. */
static size_t match_run(const struct reading *reading, const char *at)
{
    const struct nw_hash_key *key = &reading->names->key;
    const size_t prefix = at[0] == '0' && (at[1] == 'x' || at[1] == 'X') ? 2
                          : strncmp(at, "enx", 3) == 0                   ? 3
                                                                         : 0;
    const char *digits = at + prefix;
    const size_t length = hex_run(digits);
    char text[17];

    if (length < 12 || is_word(digits[length]) ||
        (prefix == 0 &&
         (strcspn(digits, "0123456789") >= length || strcspn(digits, "abcdefABCDEF") >= length)))
        return 0;
    fwrite(at, 1, prefix, reading->out);
    if (length == 12 || length == 16) {
        snprintf(text, sizeof text, "%.*s", (int)length, digits);
        const uint64_t value = strtoull(text, NULL, 16);

        write_like(reading->out, digits, length,
                   length == 12 ? nw_anonymous_mac(key, value) : nw_anonymous_guid(key, value),
                   (int)length);
        return prefix + length;
    }
    uint64_t hash = nw_hash(key, digits, length);

    for (size_t i = 0; i < length; i++) {
        hash = nw_hash(key, &hash, sizeof hash);
        fputc("0123456789abcdef"[hash & 15], reading -> out);
    }
    return prefix + length;
}

/* --- paths and names with a domain --- */

/* Ends a path or a mount in running text. */
static size_t path_length(const char *at)
{
    size_t length = strcspn(at, " \t\n,;()\"'<>|");

    while (length > 1 && (at[length - 1] == ':' || at[length - 1] == '.'))
        length--;
    return length;
}

static bool is_public_path(const char *at, size_t length)
{
    static const char *const roots[] = {"/sys", "/proc", "/dev", "/etc",
                                        "/usr", "/lib",  "/bin", "/boot"};

    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        const size_t root = strlen(roots[i]);

        if (length >= root && strncmp(at, roots[i], root) == 0 &&
            (length == root || at[root] == '/'))
            return true;
    }
    return false;
}

static void write_hashed(const struct reading *reading, const char *prefix, const char *at,
                         size_t length)
{
    char *text = strndup(at, length);

    if (text != NULL)
        fprintf(reading->out, "%s%08" PRIx32, prefix,
                (uint32_t)nw_hash_text(&reading->names->key, prefix, text));
    free(text);
}

/* "/data/team", and ":14" behind a file stays. */
static size_t match_path(const struct reading *reading, const char *at)
{
    size_t length = path_length(at);

    const bool home = at[0] == '~' && memchr(at, '/', length) != NULL; /* "~alice/data" */

    if ((at[0] != '/' && !home) || length < 2 || is_public_path(at, length) ||
        (at > reading->start && (is_word(at[-1]) || at[-1] == '.' || at[-1] == '/')))
        return 0; /* "GB/s", "1/2" */
    for (size_t i = length; i > 1 && (isdigit((unsigned char)at[i - 1]) || at[i - 1] == ':'); i--)
        if (at[i - 1] == ':')
            length = i - 1;
    write_hashed(reading, "/path-", at, length);
    return length;
}

/* "server:/export", "10.0.0.1@o2ib:/lustre", "https://bucket.example" */
static size_t match_mount(const struct reading *reading, const char *at)
{
    const size_t length = path_length(at);
    const char *mark = memmem(at, length, ":/", 2);

    if (mark == NULL || mark == at || (at > reading->start && !isspace((unsigned char)at[-1])))
        return 0;
    write_hashed(reading, "source-", at, length);
    return length;
}

/* "node7.cluster.example": two dots at least, and no digits in the last part. */
static size_t match_domain(const struct reading *reading, const char *at)
{
    static const char *const files[] = {"so", "txt", "xml", "log", "json", "conf", "service"};
    size_t length = 0, last = 0, dots = 0;

    while (is_word(at[length]) || at[length] == '-' ||
           (at[length] == '.' && is_word(at[length + 1]))) {
        if (at[length] == '.') {
            dots++;
            last = length + 1;
        }
        length++;
    }
    if (dots < 2 || length - last < 2)
        return 0;
    for (size_t i = last; i < length; i++)
        if (!isalpha((unsigned char)at[i]))
            return 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i]) == length - last && strncmp(at + last, files[i], length - last) == 0)
            return 0;
    write_hashed(reading, "host-", at, length);
    return length;
}

/* "alice@login", "fs1@o2ib": letters first on both sides, so that "x16@5" stays. */
static size_t match_account(const struct reading *reading, const char *at)
{
    size_t length = 0, sign = 0;

    while (is_word(at[length]) || strchr("-.@", at[length]) != NULL) {
        if (at[length] == '\0' || (at[length] == '@' && sign > 0))
            break;
        if (at[length] == '@')
            sign = length;
        length++;
    }
    if (sign == 0 || !isalpha((unsigned char)at[0]) || !isalpha((unsigned char)at[sign + 1]))
        return 0;
    while (at[length - 1] == '.' || at[length - 1] == '-')
        length--;
    write_hashed(reading, "account-", at, length);
    return length;
}

/* --- all of it --- */

static const struct {
    size_t (*match)(const struct reading *reading, const char *at);
    unsigned holds; /* 0: always */
} matchers[] = {
    {match_name, 0},
    {match_mount, NW_TEXT_PATHS},
    {match_uuid, NW_TEXT_ADDRESSES | NW_TEXT_IDS},
    {match_colons, NW_TEXT_ADDRESSES | NW_TEXT_IDS},
    {match_hyphens, NW_TEXT_ADDRESSES | NW_TEXT_IDS},
    {match_ipv6, NW_TEXT_ADDRESSES | NW_TEXT_IDS},
    {match_ipv4, NW_TEXT_ADDRESSES},
    {match_run, NW_TEXT_ADDRESSES | NW_TEXT_IDS},
    {match_account, NW_TEXT_PATHS},
    {match_domain, NW_TEXT_PATHS},
    {match_path, NW_TEXT_PATHS},
};

static size_t match(const struct reading *reading, const char *at)
{
    for (size_t i = 0; i < sizeof matchers / sizeof *matchers; i++)
        if (matchers[i].holds == 0 || (matchers[i].holds & reading->holds) != 0) {
            const size_t taken = matchers[i].match(reading, at);

            if (taken > 0)
                return taken;
        }
    return 0;
}

char *nw_anonymous_text(const struct nw_names *names, const char *text, unsigned holds)
{
    char *copy = NULL;
    size_t size;
    struct reading reading = {.names = names, .start = text, .holds = holds};

    reading.out = open_memstream(&copy, &size);
    if (reading.out == NULL)
        return NULL;
    for (const char *at = text; *at != '\0';) {
        /* What is secret begins with a word, or is one of the signs that begin a path or "::1". */
        const bool begins = at == text || !is_word(at[-1]) || !is_word(*at);
        const size_t taken = begins ? match(&reading, at) : 0;

        if (taken == 0)
            fputc(*at, reading.out);
        at += taken > 0 ? taken : 1;
    }
    if (fclose(reading.out) != 0) {
        free(copy);
        return NULL;
    }
    return copy;
}
