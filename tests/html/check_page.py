#!/usr/bin/env python3
"""check_page.py NODEWORTH: what `nodeworth report` writes, in headless Chromium, from a file, with the network off.

Nothing is requested, nothing is said in the console; charts draw, legends switch lines, the value under the pointer is the record's;
language and colours switch; without a script all is there; printed it is A4; no text of a hostile file runs; and it can be read by
keyboard and screen reader (own checks, and axe-core where NW_AXE or the Python package axe_playwright_python has it).
Exit status 77 without Chromium, its driver or selenium."""
import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

program = os.path.abspath(sys.argv[1])
source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def skip(why):
    print(f'check_page.py: skipped: {why}')
    sys.exit(77)


chromium = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
driver_path = shutil.which('chromedriver')
if not chromium or not driver_path:
    skip('chromium and chromedriver are not here (ci/setup --daemons installs them)')
try:
    from selenium import webdriver
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    skip('this Python has no selenium (Debian: python3-selenium)')

failures = 0


def expect(truth, what):
    global failures
    if not truth:
        failures += 1
        print(f'FAILED: {what}')


# ---- pictures ------------------------------------------------------------------------------------

def pixels(png):
    """Rows of (r, g, b) of a PNG of 8 bits, RGB or RGBA, as a browser writes it."""
    at, data, width, height, channels = 8, b'', 0, 0, 0
    while at < len(png):
        length, kind = struct.unpack('>I4s', png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        if kind == b'IHDR':
            width, height, depth, colour = struct.unpack('>IIBB', body[:10])
            channels = {2: 3, 6: 4}[colour]
            assert depth == 8
        elif kind == b'IDAT':
            data += body
        at += 12 + length
    data = zlib.decompress(data)
    stride, before, rows = width * channels, bytearray(width * channels), []
    for y in range(height):
        kind, line = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        if kind:
            for i in range(stride):
                left = line[i - channels] if i >= channels else 0
                up, corner = before[i], before[i - channels] if i >= channels else 0
                if kind == 1:
                    line[i] = (line[i] + left) & 255
                elif kind == 2:
                    line[i] = (line[i] + up) & 255
                elif kind == 3:
                    line[i] = (line[i] + (left + up) // 2) & 255
                else:
                    guess = left + up - corner
                    near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
                    line[i] = (line[i] + near) & 255
        rows.append(line)
        before = line
    return [bytes(row[i:i + 3]) for row in rows for i in range(0, stride, channels)]


def count_colour(png, rgb):
    wanted = bytes.fromhex(rgb)
    return sum(pixel == wanted for pixel in pixels(png))


# ---- the pages -----------------------------------------------------------------------------------

folder = tempfile.mkdtemp(prefix='nw-html-')
HOSTILE = '</script><script>window.hit=1</script>"\'><img src=x onerror="window.hit=1">\u202e\u2028 ' + 'x' * 200000


def write(name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def report(name, *arguments):
    path = os.path.join(folder, name)
    done = subprocess.run([program, 'report', *arguments, '-o', path], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f'{name}: {done.stderr}')
    return path


def pages():
    offer = write('offer.ini', '[quote]\nvendor = Example Cloud\n[cluster]\nnodes = 2\n[gpu]\nmodel = H100 SXM\ncount = 8\n'
                  'nvlink_GBps = 900\nnvlink_is = bidirectional\n[network]\nnic_count = 8\nnic_gbps = 400\n[disk]\nread_GBps = 6\n'
                  '[price]\ncurrency = CNY\nper_node_hour = 180\n')
    results = source + '/tests/results/gpus-simulated.jsonl'
    whole = report('whole.html', results, source + '/tests/logs/oci-h100-2node-above-nic.log', '--quote', offer, '--model', 'llama-2-7b')
    context = {'schema': 1, 'kind': 'context', 'tool': HOSTILE, 'tool_version': HOSTILE, 'backend': 'mpi', 'library': HOSTILE, 'ranks': 2,
               'hosts': 1, 'host_list': [{'name': HOSTILE, 'ranks': 2, 'cpu': HOSTILE}], 'simulated': False,
               'environment': {'NCCL_X': HOSTILE}, 'plan': {HOSTILE: HOSTILE}}
    finding = {'schema': 1, 'kind': 'finding', 'severity': 'failure', 'code': 'x', 'where': HOSTILE, 'text': HOSTILE, 'remedy': HOSTILE}
    record = {'schema': 1, 'kind': 'record', 'case': 'pairs', 'collective': 'sendrecv', 'lane': 'auto', 'dtype': 'float', 'op': 'none',
              'ranks': 2, 'hosts': 1, 'bytes': 1024, 'peer_a': 0, 'peer_b': 1, 'host_a': HOSTILE, 'host_b': HOSTILE, 'in_place': False,
              'busbw_bytes_per_s': 1e9, 'time_ns': {'median': 1000, 'count': 9}, 'simulated': False}
    hostile = write('hostile.jsonl', ''.join(json.dumps(line) + '\n' for line in (context, finding, record)))
    bad_offer = write('bad.ini', '[quote]\nvendor = <img src=x onerror=window.hit=1>\nnote = "><svg onload=window.hit=1>\n[gpu]\n'
                      'model = <script>window.hit=1</script>\n')
    return results, whole, report('hostile.html', hostile, '--quote', bad_offer)


# ---- in the browser ------------------------------------------------------------------------------

def open_browser():
    options = Options()
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--window-size=1100,1400', '--force-device-scale-factor=1',
                     '--host-resolver-rules=MAP * ~NOTFOUND', '--disable-background-networking', '--disable-component-update',
                     '--disable-dev-shm-usage', f'--user-data-dir={folder}/profile'):
        options.add_argument(argument)
    options.binary_location = chromium
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    return webdriver.Chrome(service=Service(driver_path), options=options)


def check_quiet(browser, what):
    said = [entry['message'] for entry in browser.get_log('browser')]
    expect(not said, f'{what}: the console says {said[:3]}')
    asked = []
    for entry in browser.get_log('performance'):
        message = json.loads(entry['message'])['message']
        if message['method'] == 'Network.requestWillBeSent':
            asked.append(message['params']['request']['url'])
    asked = [url for url in asked if not url.startswith('chrome')]
    expect(asked and all(url.startswith('file://') for url in asked), f'{what}: requested {asked[:3]}')
    expect(len(asked) == 1, f'{what}: {len(asked)} requests')


def shown(browser, selector):
    return [element for element in browser.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]


def figures_with(browser, text):
    return [f for f in shown(browser, 'main figure') if text in f.find_element(By.TAG_NAME, 'figcaption').text]


def check_charts(browser, results):
    """Every marker's value is that of a record; the chart has its line; a legend's switch takes it away."""
    records = [json.loads(line) for line in open(results, encoding='utf-8')]
    curves = {(r['collective'], r['lane'], r['bytes']): r for r in records if r.get('kind') == 'record' and r['case'] == 'coll'}
    units = {'B': 1, 'KiB': 1024, 'MiB': 1024**2, 'GiB': 1024**3}
    checked = 0
    for tip in browser.execute_script('return [...document.querySelectorAll("#en-measured [data-tip]")].map(m => [m.dataset.tip,'
                                      'm.closest("figure").querySelector("figcaption").textContent])'):
        found = re.match(r'(\w+)(?:,.*?)?, ([\d.]+) (\w+): ([\d.]+) GB/s', tip[0])
        expect(found, f'a marker says {tip[0]}')
        record = found and curves.get((tip[1].split()[0], found[1], int(float(found[2]) * units[found[3]])))
        if record and 'ranks: 2,' in tip[1]:
            expect(abs(float(found[4]) / (record['busbw_bytes_per_s'] / 1e9) - 1) < 0.006, f'{tip[0]} is {record["busbw_bytes_per_s"]}')
            checked += 1
    expect(checked >= 6, f'only {checked} markers could be held against records')

    figure = figures_with(browser, 'all_reduce (case coll), ranks: 2')[0]
    chart = figure.find_element(By.CSS_SELECTOR, 'svg.chart')
    browser.execute_script('arguments[0].scrollIntoView({block: "center", behavior: "instant"})', chart)
    marker = chart.find_elements(By.CSS_SELECTOR, '[data-series="0"] .m')[-1]
    ActionChains(browser).move_to_element(marker).perform()
    tip = browser.find_element(By.ID, 'tip')
    expect(tip.is_displayed() and tip.text == marker.get_attribute('data-tip'), f'under the pointer: "{tip.text}"')
    chart.click()
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    expect(tip.is_displayed() and tip.text == chart.find_element(By.CSS_SELECTOR, '[data-tip]').get_attribute('data-tip'),
           f'by keyboard: "{tip.text}"')
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    before = count_colour(chart.screenshot_as_png, '0072b2')
    button = figure.find_element(By.CSS_SELECTOR, '.legend button')
    button.click()
    after = count_colour(chart.screenshot_as_png, '0072b2')
    expect(before > 80 and after == 0, f'pixels of the first line: {before}, switched off: {after}')
    expect(button.get_attribute('aria-pressed') == 'false', 'the switch says that it is off')
    button.click()
    heat = shown(browser, '#en-pairs svg.chart')
    expect(not heat or len(set(pixels(heat[0].screenshot_as_png))) > 3, 'the map has colours')
    expect(len(shown(browser, 'main svg.chart')) >= 8, 'charts of curves, ways, machine, step, decision')


def background(browser):
    return browser.execute_script('return getComputedStyle(document.documentElement).backgroundColor')


def check_switches(browser):
    light = background(browser)
    theme = browser.find_element(By.CSS_SELECTOR, '[data-theme-switch]')
    browser.execute_script('scrollTo({top: 0, behavior: "instant"})')
    theme.click()
    expect(light == 'rgb(255, 255, 255)' and background(browser) == 'rgb(21, 23, 27)', f'colours: {light}, {background(browser)}')
    theme.click()
    browser.execute_script('localStorage.clear(); delete document.documentElement.dataset.theme')
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': 'dark'}]})
    expect(background(browser) == 'rgb(21, 23, 27)', 'a dark system makes it dark')
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': []})
    browser.find_element(By.CSS_SELECTOR, '[data-language=zh]').click()
    expect(browser.execute_script('return document.documentElement.lang') == 'zh', 'the language of the page')
    expect([m.get_attribute('id') for m in shown(browser, 'main')] == ['zh'], 'the Chinese page alone is shown')
    heads = [h.text for h in shown(browser, 'main h2')]
    expect(len(heads) >= 7 and all(re.search('[\u4e00-\u9fff]', head) for head in heads), f'headings: {heads}')
    browser.find_element(By.CSS_SELECTOR, '[data-language=en]').click()
    browser.execute_script('localStorage.clear()')


def check_structure(browser, what):
    """What a screen reader and a keyboard need, without axe-core."""
    faults = browser.execute_script(r'''
        const bad = [], q = s => [...document.querySelectorAll(s)], ids = new Set();
        q('[id]').forEach(e => { if (ids.has(e.id)) bad.push('id twice: ' + e.id); ids.add(e.id); });
        q('[aria-labelledby]').forEach(e => e.getAttribute('aria-labelledby').split(' ').forEach(
            id => { if (!ids.has(id)) bad.push('no such label: ' + id); }));
        q('svg.chart').forEach(e => { if (e.getAttribute('role') !== 'img') bad.push('a chart without role'); });
        q('table').forEach(t => { if (!t.caption || !t.querySelector('th[scope]')) bad.push('a table without caption or heads'); });
        q('button').forEach(b => { if (!b.textContent.trim()) bad.push('a button without a name'); });
        q('a[href^="#"]').forEach(a => { if (!ids.has(a.getAttribute('href').slice(1))) bad.push('no target: ' + a.href); });
        q('main').forEach(m => { let last = 0; m.querySelectorAll('h1,h2,h3,h4').forEach(h => {
            const level = +h.tagName[1]; if (level > last + 1) bad.push('heading skipped before: ' + h.textContent); last = level; }); });
        if (q('main:not([hidden])').length !== 1) bad.push('not one main');
        if (!document.documentElement.lang || !document.title) bad.push('no language or title');
        q('*').forEach(e => { if (e.hasAttribute('style') && e.id !== 'tip') bad.push('a style attribute: ' + e.tagName);
            for (const a of e.attributes) if (/^on/.test(a.name)) bad.push('a handler: ' + a.name); });
        return bad;''')
    expect(not faults, f'{what}: {faults[:5]}')


def axe_source():
    path = os.environ.get('NW_AXE')
    if not path:
        package = importlib.util.find_spec('axe_playwright_python')
        path = package and os.path.join(os.path.dirname(package.origin), 'axe.min.js')
    return open(path, encoding='utf-8').read() if path and os.path.exists(path) else None


def check_axe(browser, what):
    axe = axe_source()
    if axe is None:
        print('axe-core is not here: own checks alone (pip install axe-playwright-python, or NW_AXE=axe.min.js)')
        return
    browser.execute_script(axe)
    browser.set_script_timeout(120)
    found = browser.execute_async_script('const done = arguments[0]; axe.run(document, {resultTypes: ["violations"]}).then('
                                         'r => done(r.violations.map(v => v.id + ": " + v.nodes[0].html.slice(0, 200))), e => done([String(e)]))')
    expect(not found, f'{what}: axe-core: {found}')
    print('axe-core', browser.execute_script('return axe.version'), 'without a violation' if not found else 'found some')


def check_without_script(browser, page):
    browser.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': True})
    browser.get('file://' + page)
    expect(not shown(browser, '.tools'), 'switches that would do nothing are not shown')
    expect(len(shown(browser, 'main svg.chart')) >= 8 and len(shown(browser, '#en-verdict table')) >= 2, 'charts and tables without a script')
    expect('llama-2-7b' in browser.find_element(By.ID, 'en-decision').text, 'the decision without a script')
    browser.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': False})


def check_paper(browser):
    import base64
    pdf = base64.b64decode(browser.execute_cdp_cmd('Page.printToPDF', {'preferCSSPageSize': True, 'printBackground': True})['data'])
    boxes = re.findall(rb'/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)', pdf)
    expect(boxes and all(abs(float(w) - 595.3) < 1 and abs(float(h) - 841.9) < 1 for w, h in boxes), f'paper: {boxes[:2]}')
    expect(2 <= len(boxes) <= 16, f'{len(boxes)} sheets')
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'media': 'print'})
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': 688, 'height': 1000, 'deviceScaleFactor': 1, 'mobile': False})
    wide = browser.execute_script('return [...document.querySelectorAll("main:not([hidden]) *")].filter('
                                  'e => e.getBoundingClientRect().right > 690).map(e => e.tagName + " " + e.className).slice(0, 5)')
    expect(not wide, f'wider than the paper: {wide}')
    expect(not shown(browser, '.tools, nav'), 'nothing to click on paper')
    browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'media': ''})


def main():
    results, whole, hostile = pages()
    expect(os.path.getsize(whole) < 1500000, f'{os.path.getsize(whole)} bytes')
    browser = open_browser()
    try:
        browser.get('about:blank')
        for kind in ('browser', 'performance'):
            browser.get_log(kind)  # of the browser's own first page
        browser.get('file://' + whole)
        check_quiet(browser, 'the page')
        check_structure(browser, 'the page')
        check_charts(browser, results)
        check_switches(browser)
        check_paper(browser)
        check_without_script(browser, whole)
        browser.get('file://' + hostile)
        expect(browser.execute_script('return window.hit') is None, 'a text ran')
        check_structure(browser, 'hostile texts')
        check_axe(browser, 'the page')
        browser.get_log('performance')
        expect(not browser.get_log('browser'), 'hostile texts: the console says something')
        expect(os.path.getsize(hostile) < 300000, f'hostile texts: {os.path.getsize(hostile)} bytes')
    finally:
        browser.quit()
        if not failures:
            shutil.rmtree(folder, ignore_errors=True)
    print(f'{failures} failed' + (f'; the pages are in {folder}' if failures else ''))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
