#!/usr/bin/env python3
"""screenshots.py FOLDER NAME=PAGE.html[,LANGUAGE][,dark][,#SECTION]…: pictures of pages of `nodeworth report`, small PNGs for docs/img.

Needs Chromium with its driver, python3-selenium and pngquant (Debian). 1000 × 1200 pixels of the page from its top, or from a
section on."""
import os
import subprocess
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

options = Options()
for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--window-size=1000,1343'):
    options.add_argument(argument)
browser = webdriver.Chrome(service=Service('/usr/bin/chromedriver'), options=options)
for task in sys.argv[2:]:
    name, page = task.split('=', 1)
    page, *wishes = page.split(',')
    browser.get('file://' + os.path.abspath(page))
    language = next((wish for wish in wishes if wish in ('en', 'zh')), 'en')
    browser.execute_script(f'document.querySelector("[data-language={language}]").click()')
    if 'dark' in wishes:
        browser.execute_script('document.documentElement.dataset.theme = "dark"')
    section = next((wish[1:] for wish in wishes if wish.startswith('#')), None)
    if section:
        browser.execute_script(f'document.getElementById("{language}-{section}").scrollIntoView({{behavior: "instant"}})')
    path = f'{sys.argv[1]}/{name}.png'
    browser.save_screenshot(path)
    subprocess.run(['pngquant', '--force', '--strip', '--output', path, '48', path], check=True)
    print(path, os.path.getsize(path))
browser.quit()
