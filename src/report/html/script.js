
(function () {
  'use strict';
  var form = document.getElementById('filter');
  var text = document.getElementById('text');
  var verdict = document.getElementById('verdict');
  var shown = document.getElementById('shown');
  var items = Array.from(document.querySelectorAll('.item'));
  var groups = Array.from(document.querySelectorAll('details.group'));
  var words = new Map();
  var before = null;

  function textOf(item) {
    if (!words.has(item)) words.set(item, (item.id + ' ' + item.textContent).toLowerCase());
    return words.get(item);
  }

  function apply() {
    var asked = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    var wanted = verdict.value;
    var active = asked.length > 0 || wanted !== '';
    var count = 0;
    items.forEach(function (item) {
      var fits = (!wanted || item.dataset.verdict === wanted) &&
        asked.every(function (word) { return textOf(item).includes(word); });
      item.hidden = !fits;
      if (fits) count += 1;
    });
    if (active && !before) before = groups.map(function (group) { return group.open; });
    groups.forEach(function (group, index) {
      group.hidden = active && !group.querySelector('.item:not([hidden])');
      if (active) group.open = true;
      else if (before) group.open = before[index];
    });
    if (!active) before = null;
    shown.textContent = active ? count + ' of ' + items.length : '';
  }

  function reveal() {
    var id = decodeURIComponent(location.hash.slice(1));
    var found = id && document.getElementById(id);
    if (!found) return;
    if (found.closest('[hidden]')) {
      text.value = '';
      verdict.value = '';
      apply();
    }
    for (var at = found; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    found.scrollIntoView();
    if (found.hasAttribute('tabindex')) found.focus({ preventScroll: true });
  }

  function step(by) {
    var stories = items.filter(function (item) { return item.classList.contains('story') && !item.hidden; });
    if (!stories.length) return;
    var at = stories.indexOf(document.activeElement.closest('.story'));
    var next = stories[at < 0 ? (by > 0 ? 0 : stories.length - 1) : Math.min(Math.max(at + by, 0), stories.length - 1)];
    next.scrollIntoView();
    next.focus({ preventScroll: true });
  }

  // A page of two recordings has nothing to filter.
  if (form) {
    form.hidden = false;
    form.addEventListener('submit', function (event) { event.preventDefault(); });
    text.addEventListener('input', apply);
    verdict.addEventListener('change', apply);
  }
  window.addEventListener('hashchange', reveal);
  document.addEventListener('keydown', function (event) {
    if (event.key === '/' && form && event.target !== text && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      text.focus();
    } else if (event.key === 'Escape' && form && event.target === text) {
      text.value = '';
      apply();
    } else if ((event.key === 'j' || event.key === 'k') && !/^(INPUT|SELECT|BUTTON)$/.test(event.target.tagName) &&
        !event.ctrlKey && !event.metaKey && !event.altKey) {
      step(event.key === 'j' ? 1 : -1);
    }
  });
  document.querySelectorAll('pre.command').forEach(function (command) {
    var said = command.textContent;
    var button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', function () {
      navigator.clipboard.writeText(said).then(function () { button.textContent = 'Copied'; });
    });
    command.append(button);
  });
  reveal();
})();
