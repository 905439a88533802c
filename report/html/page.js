/* Values under the pointer, legends that switch lines, language and colours. The page is whole without. */
(function () {
  'use strict';
  var root = document.documentElement, tip = document.getElementById('tip');
  var all = function (list, each) { Array.prototype.forEach.call(list, each); };
  function remember(key, value) { try { localStorage.setItem('nodeworth-' + key, value); } catch (e) { /* forbidden */ } }
  function recall(key) { try { return localStorage.getItem('nodeworth-' + key); } catch (e) { return null; } }

  /* ---- language and colours ---- */
  var tools = document.querySelector('.tools'), theme = tools.querySelector('[data-theme-switch]');
  function speak(language) {
    if (!document.getElementById(language)) return;
    all(document.querySelectorAll('main'), function (main) { main.hidden = main.id !== language; });
    root.lang = language;
    document.title = document.getElementById(language).dataset.title + ' · nodeworth';
    theme.textContent = theme.getAttribute('data-' + language);
    all(tools.querySelectorAll('[data-language]'), function (button) {
      button.setAttribute('aria-pressed', String(button.dataset.language === language));
    });
  }
  all(tools.querySelectorAll('[data-language]'), function (button) {
    button.addEventListener('click', function () {
      var from = root.lang, place = location.hash.replace('#' + from + '-', '#' + button.dataset.language + '-');
      speak(button.dataset.language);
      remember('language', button.dataset.language);
      if (place !== location.hash) location.replace(place);
    });
  });
  function is_dark() {
    return root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  theme.addEventListener('click', function () {
    root.dataset.theme = is_dark() ? 'light' : 'dark';
    remember('theme', root.dataset.theme);
  });
  if (/^(light|dark)$/.test(recall('theme') || '')) root.dataset.theme = recall('theme');
  if (recall('language')) speak(recall('language'));
  tools.hidden = false;

  /* ---- values ---- */
  function hide() {
    tip.hidden = true;
    all(document.querySelectorAll('.at'), function (mark) { mark.classList.remove('at'); });
  }
  function show(mark) {
    var box = mark.getBoundingClientRect();
    hide();
    tip.textContent = mark.getAttribute('data-tip');
    tip.hidden = false;
    mark.classList.add('at');
    var x = box.left + box.width / 2 - tip.offsetWidth / 2, y = box.top - tip.offsetHeight - 8;
    tip.style.left = Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 4)) + 'px';
    tip.style.top = (y < 4 ? box.bottom + 8 : y) + 'px';
  }
  function nearest(marks, x, y) {
    var best = null, least = 40 * 40;
    marks.forEach(function (mark) {
      var box = mark.getBoundingClientRect();
      if (!box.width && !box.height) return; /* switched off */
      var dx = Math.max(box.left - x, 0, x - box.right), dy = Math.max(box.top - y, 0, y - box.bottom);
      var mx = box.left + box.width / 2 - x, my = box.top + box.height / 2 - y;
      var far = dx * dx + dy * dy + (mx * mx + my * my) / 1e6;
      if (far < least) { least = far; best = mark; }
    });
    return best;
  }
  all(document.querySelectorAll('svg.chart'), function (chart) {
    var marks = [], at = -1;
    all(chart.querySelectorAll('title'), function (title) {
      var mark = title.parentNode;
      if (mark === chart) return;
      mark.setAttribute('data-tip', title.textContent);
      mark.removeChild(title); /* or the browser shows its own beside ours */
      marks.push(mark);
    });
    if (!marks.length) return;
    chart.addEventListener('pointermove', function (event) {
      var mark = nearest(marks, event.clientX, event.clientY);
      if (mark) show(mark); else hide();
    });
    chart.addEventListener('pointerleave', hide);
    chart.setAttribute('tabindex', '0');
    chart.addEventListener('keydown', function (event) {
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === 'Escape') hide();
      if (!step) return;
      event.preventDefault();
      for (var i = 0; i < marks.length; i++) {
        at = (at + step + marks.length) % marks.length;
        if (marks[at].getBoundingClientRect().width) break;
      }
      show(marks[at]);
    });
    chart.addEventListener('blur', hide);
  });

  /* ---- legends ---- */
  all(document.querySelectorAll('.legend'), function (legend) {
    var chart = legend.parentNode.querySelector('svg.chart');
    all(legend.children, function (line) {
      var button = document.createElement('button'), series = line.dataset.series;
      button.type = 'button';
      button.setAttribute('aria-pressed', 'true');
      while (line.firstChild) button.appendChild(line.firstChild);
      line.appendChild(button);
      button.addEventListener('click', function () {
        var on = button.getAttribute('aria-pressed') !== 'true';
        button.setAttribute('aria-pressed', String(on));
        all(chart.querySelectorAll('[data-series="' + series + '"]'), function (group) {
          group.classList.toggle('off', !on);
        });
      });
    });
  });

  /* ---- paper ---- */
  addEventListener('beforeprint', hide);
})();
