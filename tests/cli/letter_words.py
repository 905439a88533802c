#!/usr/bin/env python3
"""letter_words.py SOURCE-TREE: is every sentence that can stand in a letter in the Chinese catalogue?

Reads the string literals of results/audit*.c and of the letter, with printf directives as "%s", takes sentences apart at "; " as
the letter does, and looks each up in po/zh_CN.po by its form. Directives of a translation must be those of the original."""
import glob
import re
import sys

root = sys.argv[1]
literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
directive = re.compile(r'%[-+ 0#]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[diuoxXeEfgGcsp]')


def unescape(text):
    return text.encode().decode('unicode_escape').encode('latin-1').decode() if '\\' in text else text


def catalogue():
    entries, key = {}, None
    for line in open(root + '/po/zh_CN.po', encoding='utf-8'):
        if line.startswith(('msgid ', 'msgstr ')):
            name, text = line.split(' ', 1)
            text = ''.join(literal.findall(text)).replace('\\"', '"').replace('\\\\', '\\')
            if name == 'msgid':
                key = text
            else:
                entries[key] = text
    entries.pop('', None)
    return entries


def sentences(path):
    text = open(path, encoding='utf-8').read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'(?m)^[ \t]*#[ \t]*(?!define)[^\n]*', '', text)
    for found in re.finditer(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        yield unescape(''.join(literal.findall(found.group(0))))


def form(text):
    return directive.sub('%s', text.replace('%%', '%'))


words = catalogue()
forms = [re.compile('.+'.join(re.escape(part) for part in key.split('%s')), re.S) for key in words]
bad = 0

for key, text in words.items():
    wanted = len(re.findall(r'%s', key)) if not directive.sub('', key.replace('%s', '')).count('%z') else None
    numbers = [int(n) for n in re.findall(r'%(\d)\$s', text)]
    have = len(numbers) if numbers else text.count('%s')
    if '%s' in key and '%zu' not in key and '%d' not in key and have > wanted:
        print(f'{key!r}: the translation has {have} of {wanted} texts: {text!r}')
        bad += 1
    if numbers and max(numbers) > key.count('%s'):
        print(f'{key!r}: there is no text {max(numbers)}')
        bad += 1

# Not in letters (costs, advice to whoever rents, keys), or parts of a sentence that the catalogue has whole.
skipped = re.compile(r'^(no memory|%s: promises|published|stas00|CUDA driver API|recursive doubling|GPU links|CPU and memory'
                     r'|ask |in the quote file|[a-z_]+$|, |one (node|GPU) for|the cluster for|1 (TFLOP|GB)/s|at the measured'
                     r'|%sno NVLink|%s%sby the active|only host memory over MPI was measured \(%s GB/s\), which does not use the GPUs%s'
                     r'|run all_reduce_perf of nccl-tests %s| and may not|on all GPUs of|of unknown version|print\(torch|python3'
                     r'|%d GPUs at the measured|%d node)')
count = 0
for path in sorted(glob.glob(root + '/results/audit*.c')):
    if path.endswith(('audit_json.c', 'audit_gpu.c')):
        continue
    for sentence in sentences(path):
        if skipped.match(sentence):
            continue
        for part in form(sentence).split('; '):
            plain = re.sub(r'%s', '', part).strip(' :,;')
            if len(re.findall(r'[a-z]{2,}', plain)) < 3 or skipped.match(part):
                continue
            count += 1
            if part not in words and not any(f.fullmatch(part) for f in forms):
                print(f'{path.split("/")[-1]}: not in the catalogue: {part!r}')
                bad += 1
for path in (root + '/report/letter.c', root + '/report/letter_how.c'):
    source = open(path, encoding='utf-8').read()
    for found in re.finditer(r'(?:tr\(&?page,|ask = |"[a-z_]*", )\s*((?:"(?:[^"\\\n]|\\.)*"\s*)+)', source):
        text = unescape(''.join(literal.findall(found.group(1))))
        count += 1
        if len(re.findall(r'[a-z]{2,}', text)) >= 3 and text not in words:
            print(f'{path.split("/")[-1]}: not in the catalogue: {text!r}')
            bad += 1
print(f'{count} texts, {bad} without a translation')
sys.exit(bad > 0 or count < 200)
