#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/words.h"
#include "base/words_form.h"
#include "base/words_index.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static const struct nw_words some[] = {
    {"met", "达标"},
    {"%d of %d GPUs", "%2$d 张 GPU 中的 %1$d 张"},
    {"%d of %d NICs", "%2$d 块网卡中的 %1$d 块"},
    {"%d node%s of %zu", "%3$zu 台中的 %1$d 台%2$.0s"},
    {"%s: %s is %.1f %% of the quote", "%s：%s 为报价的 %.1f %%"},
    {"%s: cannot open: %s", "%s：无法打开：%s"},
    {"%s cannot be read", "无法读取 %s"},
    {"no memory for %s", "内存不足：放不下 %s"},
    {"no memory for %s of %d bytes", "内存不足：放不下 %2$d 字节的 %1$s"},
    {"a name", "名称"},
    {"%s by %s", "%s，由 %s"},
    {"empty here", ""},
    {"\"%.4s\" is too long", "“%s”太长"},
    {"100 %% done", "完成 100 %%"},
    {"No such file or directory", "没有那个文件"},
    {"The quote is met", "报价已兑现"},
    {"unknown \"%.80s\"%s%s%s Accepted: %s%sor %d", "未知“%s”%s%s%s 可用：%s%s或 %d"},
};
static const struct nw_language chinese = {"zh", "", some, COUNT(some), "；", "。", "：", "，"};

static const char *said(const struct nw_words_index *index, const char *text, char out[512])
{
    nw_words_translate(index, &chinese, text, out, 512);
    return out;
}

Test(base_words, sentences_are_found_by_their_form)
{
    static const struct {
        const char *english, *said;
    } rows[] = {
        {"met", "达标"},
        {"3 of 8 GPUs", "8 张 GPU 中的 3 张"},
        {"x of 8 GPUs", "x of 8 GPUs"}, /* a number is a number */
        {"-3 of 8 NICs", "8 块网卡中的 -3 块"},
        {"1 node of 4", "4 台中的 1 台"}, /* the plural's "s" has no place */
        {"2 nodes of 4", "4 台中的 2 台"},
        {"a.ini: NVLink is 99.5 % of the quote", "a.ini：NVLink 为报价的 99.5 %"},
        {"x: cannot open: No such file or directory", "x：无法打开：没有那个文件"},
        {"no memory for a name of 12 bytes", "内存不足：放不下 12 字节的 名称"},
        {"no memory for a name", "内存不足：放不下 名称"}, /* parts are translated, too */
        {"met, 3 of 8 GPUs, x", "达标，8 张 GPU 中的 3 张，x"},
        {"H100, 80 GiB", "H100, 80 GiB"},
        {"63 by 126", "63，由 126"},
        {"nothing by chance", "nothing by chance"}, /* too few words of its own */
        {"unknown \"y\"; did you mean \"x\"? Accepted: a, b or 3",
         "未知“y”; did you mean \"x\"? 可用：a, b 或 3"},
        {"unknown \"y\". Accepted: or 3", "未知“y”. 可用：或 3"},
        {"gpu0: x: cannot open: met", "gpu0: x：无法打开：达标"},
        {"met; 3 of 8 GPUs; who knows", "达标；8 张 GPU 中的 3 张；who knows"},
        {"The quote is met. 3 of 8 GPUs", "报价已兑现。8 张 GPU 中的 3 张"},
        {"empty here", "empty here"}, /* not translated yet */
        {"\"1234\" is too long", "“1234”太长"},
        {"\"12345\" is too long", "\"12345\" is too long"}, /* %.4s never made that */
        {"100 % done", "完成 100 %"},
        {"100 %% done", "100 %% done"},
        {"a text of some length that says what was made by nobody at all",
         "a text of some length that says what was made by nobody at all"},
        {"", ""},
        {"%s %n %d%d%d %1$s", "%s %n %d%d%d %1$s"},
        {"no memory for %n%s%s", "内存不足：放不下 %n%s%s"}, /* never a format */
        {"; ; ; ", "; ; ; "},
        {": ", ": "},
        {"已经是中文：3 of 8 GPUs", "已经是中文：3 of 8 GPUs"},
    };
    struct nw_words_index *index = nw_words_index_new(some, COUNT(some));
    char out[512];

    for (size_t i = 0; i < COUNT(rows); i++)
        cr_expect_str_eq(said(index, rows[i].english, out), rows[i].said, "\"%s\" is \"%s\"",
                         rows[i].english, out);
    nw_words_index_free(index);
}

Test(base_words, exact_texts_are_looked_up_as_they_are)
{
    struct nw_words_index *index = nw_words_index_new(some, COUNT(some));

    cr_expect_str_eq(nw_words_exact(index, "%d of %d GPUs")->other, some[1].other);
    cr_expect_null(nw_words_exact(index, "3 of 8 GPUs"));
    cr_expect_null(nw_words_exact(index, "empty here"));
    cr_expect_null(nw_words_exact(index, ""));
    nw_words_index_free(index);
}

Test(base_words, hostile_texts_cost_little_and_stay_within_their_room)
{
    enum { LONG = 10000000 };
    struct nw_words_index *index = nw_words_index_new(some, COUNT(some));
    char out[64], *text = malloc(LONG + 1);
    static const char *const pieces[] = {": ", "; ", ". ", "%s", "node", "达", " of ", "9", "\xE8"};

    for (size_t piece = 0; piece < COUNT(pieces); piece++) {
        const size_t step = strlen(pieces[piece]);

        for (size_t length = 1; length <= LONG; length = length < 100 ? length + 7 : length * 37) {
            for (size_t i = 0; i < length; i++)
                text[i] = pieces[piece][i % step];
            text[length] = '\0';
            memset(out, '#', sizeof out);
            nw_words_translate(index, &chinese, text, out, sizeof out - 1);
            cr_assert_lt(strlen(out), sizeof out - 1);
            cr_assert_eq(out[sizeof out - 1], '#');
        }
    }
    free(text);
    nw_words_index_free(index);
}

Test(base_words, a_cut_translation_ends_with_a_whole_character)
{
    struct nw_words_index *index = nw_words_index_new(some, COUNT(some));
    char out[16];

    for (size_t size = 2; size < sizeof out; size++) {
        nw_words_translate(index, &chinese, "The quote is met", out, size);
        cr_expect_eq(strlen(out), (size - 1) / 3 * 3, "%zu: %s", size, out);
    }
    nw_words_index_free(index);
}

/* 3,000 forms with the same beginnings and ends, as "%s: no memory for %d things of kind N". */
Test(base_words, three_thousand_forms_are_searched_fast_and_right)
{
    enum { FORMS = 3000 };
    static struct nw_words words[FORMS];
    char text[128], wanted[128], out[512];

    for (int i = 0; i < FORMS; i++) {
        char *english = malloc(80), *other = malloc(80);

        snprintf(english, 80,
                 i % 2 ? "%%s: no memory for %%d things of kind %d, %%s" : "kind %d of %%d: %%s",
                 i);
        snprintf(other, 80, i % 2 ? "%%1$s: %%3$s %%2$d (%d)" : "%%2$s (%d) %%1$d", i);
        words[i] = (struct nw_words){english, other};
    }
    struct nw_words_index *index = nw_words_index_new(words, FORMS);
    const clock_t start = clock();

    for (int i = 0; i < FORMS; i++) {
        snprintf(text, sizeof text,
                 i % 2 ? "a.c: no memory for 7 things of kind %d, twice" : "kind %d of 7: twice",
                 i);
        snprintf(wanted, sizeof wanted, i % 2 ? "a.c: twice 7 (%d)" : "twice (%d) 7", i);
        cr_expect_str_eq(said(index, text, out), wanted);
    }
    cr_expect_lt((double)(clock() - start) / CLOCKS_PER_SEC, 3.0, "1 ms a sentence at most");
    nw_words_index_free(index);
    for (int i = 0; i < FORMS; i++) {
        free((char *)words[i].english);
        free((char *)words[i].other);
    }
}

Test(base_words, the_language_is_that_of_the_environment_as_gettext_takes_it)
{
    static const struct {
        const char *lc_all, *lc_messages, *lang, *language, *key;
    } rows[] = {
        {NULL, NULL, NULL, NULL, "en"},
        {NULL, NULL, "zh_CN.UTF-8", NULL, "zh"},
        {NULL, NULL, "zh", NULL, "zh"},
        {NULL, NULL, "zh_SG", NULL, "zh"},
        {NULL, NULL, "zh_TW.UTF-8", NULL, "en"},
        {NULL, NULL, "zhx", NULL, "en"},
        {NULL, NULL, "de_DE.UTF-8", NULL, "en"},
        {NULL, "en_US.UTF-8", "zh_CN.UTF-8", NULL, "en"},
        {"", "", "zh_CN.UTF-8", NULL, "zh"},
        {"C", "zh_CN", "zh_CN", "zh_CN", "en"},
        {"C.UTF-8", NULL, "zh_CN", "zh", "en"},
        {NULL, NULL, "de_DE.UTF-8", "fr:zh_CN:en", "zh"},
        {NULL, NULL, "zh_CN.UTF-8", "en:zh", "en"},
        {NULL, NULL, NULL, "zh", "en"},
    };
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE"};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const values[] = {rows[i].lc_all, rows[i].lc_messages, rows[i].lang,
                                      rows[i].language};

        for (size_t name = 0; name < COUNT(names); name++) {
            unsetenv(names[name]);
            if (values[name] != NULL)
                setenv(names[name], values[name], 1);
        }
        cr_expect_str_eq(nw_language_of_environment()->key, rows[i].key, "row %zu", i);
    }
}

Test(base_words, the_program_speaks_english_until_it_is_told_another)
{
    const struct nw_language *language;

    cr_expect_str_eq(nw_tr("bad input"), "bad input");
    cr_expect_str_eq(nw_spoken("bad input"), "bad input");
    cr_assert_eq(nw_language_find("zh", &language), NW_OK);
    nw_speak(language);
    cr_expect_str_eq(nw_tr("bad input"), "输入有误");
    cr_expect_str_eq(nw_spoken("bad input"), "输入有误");
    const char *long_text = calloc(1, 5000);

    memset((char *)long_text, 'x', 4999);
    cr_expect_eq(nw_spoken(long_text), long_text);
    cr_expect_null(nw_spoken(NULL));
    cr_expect_eq(nw_language_find("zh_CN", &language), NW_EUSAGE);
    cr_expect(strstr(nw_last_error()->text, "accepted: en, zh") != NULL);
    free((char *)long_text);
}
