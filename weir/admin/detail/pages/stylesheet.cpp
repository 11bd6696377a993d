// The style sheet of the admin pages, light and dark.
#include "weir/admin/detail/pages/page.hpp"

namespace weir::admin {

std::string_view stylesheet() noexcept {
  return R"(:root {
  color-scheme: light dark;
  --back: #f6f7f9; --card: #ffffff; --ink: #1b2430; --faint: #66707d; --line: #dfe3e8;
  --accent: #1f5fbf; --good: #16794a; --warning: #9a5b00; --bad: #b3261e;
  --good-back: #def3e7; --warning-back: #fdf0d5; --bad-back: #fbe1df; --track: #e4e8ed;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #11161c; --card: #1a2129; --ink: #e3e8ee; --faint: #93a0ad; --line: #2d3742;
    --accent: #7db2ff; --good: #6fd6a2; --warning: #f0bb63; --bad: #ff9089;
    --good-back: #153626; --warning-back: #3d2e12; --bad-back: #43201e; --track: #2d3742;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 14px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 4px 24px; align-items: baseline; padding: 12px 24px;
  background: var(--card); border-bottom: 1px solid var(--line); }
header strong { font-size: 16px; }
nav { display: flex; flex-wrap: wrap; gap: 2px; }
nav a { padding: 3px 9px; border-radius: 6px; color: var(--faint); text-decoration: none; }
nav a:hover { background: var(--back); color: var(--ink); }
nav a.here { background: var(--accent); color: var(--card); }
main { max-width: 1240px; margin: 0 auto; padding: 8px 24px 24px; }
h1 { margin: 16px 0 4px; font-size: 22px; font-weight: 650; }
h2 { margin: 0 0 8px; font-size: 15px; font-weight: 650; }
section { margin: 16px 0; padding: 16px 18px; background: var(--card);
  border: 1px solid var(--line); border-radius: 10px; }
.note, .empty, footer { color: var(--faint); }
.note { margin: 0 0 10px; max-width: 90ch; }
.empty { margin: 0; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 12px 20px;
  margin: 0 0 4px; }
dl + .scroll { margin-top: 14px; }
dt { color: var(--faint); font-size: 12px; }
dd { margin: 0; font-size: 18px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); color: var(--faint);
  font-size: 12px; font-weight: 500; text-align: left; white-space: nowrap; }
td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: middle;
  overflow-wrap: anywhere; }
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
a { color: var(--accent); }
.good, .warning, .bad { padding: 1px 7px; border-radius: 10px; }
.good { background: var(--good-back); color: var(--good); }
.warning { background: var(--warning-back); color: var(--warning); }
.bad { background: var(--bad-back); color: var(--bad); }
.bar { width: 90px; height: 8px; margin-right: 10px; border-radius: 4px; vertical-align: middle; }
.bar .track { fill: var(--track); }
.bar .level { fill: var(--accent); }
.warning .bar .level { fill: var(--warning); }
.bad .bar .level { fill: var(--bad); }
pre { margin: 0; overflow-x: auto; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
form { display: inline-flex; gap: 6px; margin: 0; }
select, button { font: inherit; padding: 2px 8px; color: inherit; background: var(--back);
  border: 1px solid var(--line); border-radius: 6px; }
footer { max-width: 1240px; margin: 0 auto; padding: 0 24px 24px; font-size: 12px; }
)";
}

}  // namespace weir::admin
