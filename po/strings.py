#!/usr/bin/env python3
"""strings.py SOURCE-TREE [--list | --pot | --check PO]: every string literal of the C sources that a person can come to read.

xgettext finds what stands in a call that it was told of. Here sentences stand in tables, in X-macros, behind "?" and in some forty
functions that take one; so all literals are read, and what is taken is what looks like language: two words or more, or the title
of a column, or what nw_tr() and nw_print() are given. What is for machines is left out by where it stands: see SKIP below.

  --list        file, function, string; one a line
  --update PO   writes the catalogue anew in the order of the sources; translations stay, what is new is empty (po/update)
  --check PO [FOLDER...]  fails when a string (of these folders) has no translation or a fuzzy one
"""
import glob
import re
import sys

FOLDERS = 'base topo kernels collectives bench results model report cli'.split()

# Files whose literals are no language: what other programs read, and tables of names.
SKIP_FILES = {
    'cli/completion.c',                     # programs of shells
    'report/svg.c', 'report/svg_bars.c',    # marks of a picture; its words come from the page
}
# Calls whose literals are compared, parsed or written for machines.
SKIP_CALLS = set('''strstr strcmp strncmp strcasecmp strncasecmp strcspn strspn strchr memcmp sscanf fopen popen getenv setenv
 dlsym regcomp _Static_assert static_assert __attribute__ __asm__ asm memfd_create nw_json_set_text json_pack json_unpack_ex
 json_object_get json_object_set_new nw_json_get_text nw_json_get_real'''.split())

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|\n[ \t]*#[ \t]*\w+|\n|[^\s]', re.S)
DIRECTIVE = re.compile(r'%[-+0#]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[diuoxXeEfgGcsp]')
ESCAPE = re.compile(rb'\\(x[0-9A-Fa-f]+|[0-7]{1,3}|.)', re.S)
SIMPLE = {b'n': b'\n', b't': b'\t', b'v': b'\v', b'r': b'\r', b'a': b'\a', b'b': b'\b', b'f': b'\f', b'0': b'\0'}


def unescape(text):
    def one(match):
        code = match.group(1)
        if code[:1] == b'x':
            return bytes([int(code[1:], 16) & 255])
        if code[:1].isdigit():
            return bytes([int(code, 8) & 255])
        return SIMPLE.get(code, code)
    return ESCAPE.sub(one, text.encode()).decode('utf-8', 'replace')


def macros_of(text):
    return dict(re.findall(r'^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+"((?:[^"\\\n]|\\.)*)"[ \t]*(?:/\*.*)?$', text, re.M))


def literals(path, macros):
    """(call, string, title of a column?) for every literal; neighbours joined, macros that are strings too."""
    tokens = [t for t in TOKEN.findall(open(path, encoding='utf-8').read()) if not t.startswith(('/*', '//')) and t not in ('\n', '\\')]
    stack, found, i, directive, directive_token = [], [], 0, '', ''
    while i < len(tokens):
        token = tokens[i]
        before = tokens[i - 1] if i else ''
        if token[0] == '\n':
            directive, directive_token = token.strip(), token
        if token == '(':
            stack.append(before)
        elif token == '{':
            stack.append('{')
        elif token in ')}' and stack:
            stack.pop()
        j, parts, quoted = i, [], False
        defined = directive.endswith('define') and tokens[i - 1] == directive_token  # the macro's own name
        while j < len(tokens) and (tokens[j][0] == '"' or tokens[j] in macros) and not defined:
            parts.append(tokens[j][1:-1] if tokens[j][0] == '"' else macros[tokens[j]])
            quoted |= tokens[j][0] == '"'
            j += 1
        if quoted and not directive.endswith('include'):
            rest = tokens[j:j + 2]
            field = before == '=' and i > 2 and tokens[i - 3] == '.' and tokens[i - 2]
            found.append((list(stack), unescape(''.join(parts)), rest[:1] == [','] and rest[1] in ('NW_LEFT', 'NW_NAME', 'NW_RIGHT', 'NW_WRAP'),
                          field))
        directive = '' if token[0] != '\n' else directive
        i = max(j, i + 1)
    return found


UNITS = set('GB GiB MB MiB KiB TB TiB Gb GFLOP TFLOP FLOP GHz MHz ms us ns TP PP'.split())


def words_of(text):
    return [word for word in re.findall(r'[A-Za-z][A-Za-z-]+', DIRECTIVE.sub(' ', text)) if word not in UNITS]


def is_language(stack, text, title, field):
    call = next((s for s in reversed(stack) if s != '{'), '') if stack else ''
    inner = stack[-1] if stack else ''
    if set(stack) & SKIP_CALLS:
        return False
    words = words_of(text)
    if title or inner in ('nw_tr', 'nw_print', 'nw_print_to', 'tr', 'nw_say') or field in ('help', 'doc', 'summary'):
        return bool(words)
    return len(words) >= 2 and ' ' in text.strip() and any(w.islower() for w in words)


def strings(root):
    """{string: [file, function]} in the order of folders and files."""
    found, texts = {}, {}
    for folder in FOLDERS:
        for ext in ('h', 'c'):
            for path in sorted(glob.glob(f'{root}/{folder}/*.{ext}')):
                texts[path[len(root) + 1:]] = path
    shared = {}
    for name, path in texts.items():
        if name.endswith('.h'):
            shared.update(macros_of(open(path, encoding='utf-8').read()))
    for name, path in texts.items():
        if name in SKIP_FILES:
            continue
        macros = dict(shared, PRIu64='lu', PRId64='ld', PRIx64='lx')  # of a 64-bit machine
        macros.update(macros_of(open(path, encoding='utf-8').read()))
        for stack, text, title, field in literals(path, macros):
            if is_language(stack, text, title, field) and text not in found:
                found[text] = (name, stack[-1] if stack else '')
    return found


def escape(text):
    out = text.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n').replace('\t', '\\t').replace('\v', '\\v').replace('\r', '\\r')
    return '"' + out + '"'


def entry(msgid, msgstr, name):
    flag = '#, c-format\n' if DIRECTIVE.search(msgid.replace('%%', '')) or '%%' in msgid else ''
    return f'#: {name}\n{flag}msgid {escape(msgid)}\nmsgstr {escape(msgstr)}\n'


def read_lines(path):
    """Texts of a list: one a line, as in a .po file but without quotes; '#' begins a reason."""
    with open(path, encoding='utf-8') as lines:
        return [unescape(line.rstrip('\n')) for line in lines if line.strip() and not line.startswith('#')]


def wanted(root):
    """{string: file}: of the sources without what po/skipped.txt names, then the forms of po/forms.txt."""
    skipped = set(read_lines(root + '/po/skipped.txt'))
    texts = {text: name for text, (name, _) in strings(root).items() if text not in skipped}
    for text in read_lines(root + '/po/forms.txt'):
        texts.setdefault(text, 'po/forms.txt')
    return texts


def read_po(path):
    """{msgid: (msgstr, fuzzy?)}"""
    found, fields, name, fuzzy = {}, {}, None, False
    for line in open(path, encoding='utf-8').read().split('\n') + ['msgid ']:
        if line.startswith('#,'):
            fuzzy = 'fuzzy' in line
        if line.startswith('msgid '):
            if 'msgstr' in fields:
                found[fields['msgid']] = (fields['msgstr'], fields['fuzzy'])
            fields, name = {'msgid': '', 'fuzzy': fuzzy}, 'msgid'
            fuzzy = False
        elif line.startswith('msgstr '):
            name = 'msgstr'
            fields[name] = ''
        if name and '"' in line and not line.startswith('#'):
            fields[name] += unescape(line[line.index('"') + 1:line.rindex('"')])
    found.pop('', None)
    return found


HEADER = """# Chinese of nodeworth. Made from the sources by po/update, which keeps the translations; docs/translating.md.
msgid ""
msgstr ""
"Project-Id-Version: nodeworth\\n"
"PO-Revision-Date: 2026-11-30 21:00+0000\\n"
"Last-Translator: the authors of nodeworth\\n"
"Language-Team: none\\n"
"Language: zh_CN\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"""


def write_po(path, texts, translated):
    with open(path, 'w', encoding='utf-8') as out:
        out.write(HEADER)
        for text, name in texts.items():
            out.write('\n' + entry(text, translated.get(text, ''), name))


def check(root, path, folders):
    texts, have, bad = wanted(root), read_po(path), []
    for text, name in texts.items():
        if folders and not name.startswith(tuple(folders)):
            continue
        if text not in have or not have[text][0]:
            bad.append(f'{name}: no translation: {escape(text)}')
        elif have[text][1]:
            bad.append(f'{name}: the translation is fuzzy: {escape(text)}')
    return len(texts), bad


if __name__ == '__main__':
    root, mode = sys.argv[1].rstrip('/'), sys.argv[2] if len(sys.argv) > 2 else '--list'
    if mode == '--list':
        for text, (name, call) in strings(root).items():
            print(f'{name}\t{call}\t{escape(text)}')
    elif mode == '--update':
        write_po(sys.argv[3], wanted(root), {text: said for text, (said, _) in read_po(sys.argv[3]).items()})
    elif mode == '--check':
        count, bad = check(root, sys.argv[3], sys.argv[4:])
        print('\n'.join(bad))
        print(f'{count} texts, {len(bad)} faults; po/update brings the catalogue in step')
        sys.exit(bool(bad) or count < 2000)
