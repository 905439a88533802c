#!/usr/bin/env python3
"""page_words.py SOURCE-TREE [--list]: has every string of the page its Chinese in po/zh_CN.po?

Looks at every string literal of report/html*.c that is no markup: words of people's language are translated where they are
written (tr), in a table's head, in a list of titles. What must not be translated is listed here. --list prints what is
missing, as entries for the catalogue."""
import glob
import re
import sys

root = sys.argv[1]
literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"')

# Classes, ids, units, figures and keys; messages of failures, which are translated elsewhere.
kept = re.compile(r'^(?:[a-z]+|[a-z]-[a-z]+|cell (dark|light)|m failed|device %s%s|badge|card|facts|findings|headline|legend|c-%s|url\(#.*'
                  r'|[^a-zA-Z]*|.*(?:%s?-t|%zu SVG).*|(?:[^a-z]|GB/s|GiB|ns|us|%\.?\d*s|%s|%\w+|x|×)*|en|zh|HSDP|nodeworth|no memory for .*|the page could .*'
                  r'| data-%s=| down| hidden|chart%d|nodeworth %\.120s|%\.3g GiB|(%s )?%\.4g Gb/s|SIMULATED.*hardware.*|NVIDIA |, PCIe %s GB/s|%\.\d*s?, .*: %s|true|false|a\.b)$')
markup = re.compile(r'[<>]|\\n|^ ?[a-z-]+=|^\\|#|&[a-z]+;')
text_keys = {'short', 'met', 'note', 'warning', 'failure', 'size', 'cost', 'down', 'weights', 'gradients', 'activations', 'buffers', 'runtime',
             'fragmentation', 'pays', 'good', 'slow', 'flaky', 'failed', 'unknown'}


def unescape(text):
    return text.replace('\\"', '"').replace('\\\\', '\\')


def catalogue():
    entries, key = {}, None
    for line in open(root + '/po/zh_CN.po', encoding='utf-8'):
        if line.startswith(('msgid ', 'msgstr ', '"')):
            name = line.split(' ', 1)[0] if not line.startswith('"') else last
            text = unescape(''.join(literal.findall(line)))
            if name == 'msgid':
                key = (key if line.startswith('"') else '') + text if line.startswith('"') else text
            else:
                entries[key] = entries.get(key, '') + text if line.startswith('"') else text
            last = name
    entries.pop('', None)
    return entries


def strings(path):
    text = open(path, encoding='utf-8').read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'(?m)^[ \t]*#[^\n]*(?:\\\n[^\n]*)*', '', text)
    text = re.sub(r'nw_fail\([^;]*;', '', text)
    for found in re.finditer(r'(\w+\(\s*(?:\w+,\s*)*)?((?:"(?:[^"\\\n]|\\.)*"\s*)+)', text):
        yield unescape(''.join(literal.findall(found.group(2)))), found.group(1) or ''


words = {english for english, other in catalogue().items() if other}
# Said by name elsewhere: parts of a step, kinds of device, states of a host.
titles = re.findall(r'"[a-z_]+",\s*"([^"]+)"', open(root + '/model/breakdown.c', encoding='utf-8').read())
areas = set(re.findall(r'\{"([A-Z][A-Za-z ]+)", "[a-z_]+"', ''.join(open(path, encoding='utf-8').read() for path in glob.glob(root + '/results/audit*.c'))))
seen, missing = areas | set(titles) | {'GPU', 'NIC', 'disk'} & {'disk'} | text_keys, []
for path in sorted(glob.glob(root + '/report/html*.c')):
    if path.endswith(('html_text.c', 'html_series.c')):
        continue
    for text, call in strings(path):
        if re.match(r'(strcmp|strncmp|nw_html_id|nw_fail|strstr)', call) or markup.search(text) or not re.search(r'[a-zA-Z]{2}', text):
            continue
        if text in text_keys or not kept.match(text):
            seen.add(text)
for text in sorted(seen):
    if text not in words:
        missing.append(text)
if '--list' in sys.argv:
    for text in missing:
        print('msgid "%s"\nmsgstr ""\n' % text.replace('\\', '\\\\').replace('"', '\\"'))
    sys.exit(0)
for text in missing:
    print(f'not in po/zh_CN.po: {text!r}')
print(f'{len(seen)} strings of the page, {len(missing)} without a translation')
sys.exit(bool(missing) or len(seen) < 150)
