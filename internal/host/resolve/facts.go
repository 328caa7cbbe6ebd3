package resolve

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// path records a file that is named relative to any of the directories.
func (r *reader) path(w word, dirs []string, use event.PathUse) {
	name := w.text
	switch {
	case w.glob:
		r.glob(w, dirs, use)
		return
	case w.computed:
		r.unknown(w, use)
		return
	}
	for _, dir := range dirs {
		if dir == anywhere && !filepath.IsAbs(name) {
			r.unknown(w, use)
			continue
		}
		abs := absolute(dir, name)
		if ofProcess(abs) {
			r.unknown(w, use)
			continue
		}
		if r.named++; r.named > 4*maxFacts {
			r.unclear("it names too many files")
			return
		}
		found := r.ws.PathFrom(dir, name)
		straight := found == r.ws.within(filepath.Clean(abs))
		found.Write, found.Tree, found.Given, found.Found, found.Repository = use.Write, use.Tree, use.Given, use.Found && straight, use.Repository
		r.use(found)
		for _, alias := range r.ws.aliasesFrom(dir, name) {
			alias.Write, alias.Tree, alias.Given = use.Write, use.Tree, use.Given
			r.use(alias)
		}
		if link, ok := r.ws.link(abs); ok && use.Write {
			link.Write = true
			r.use(link)
		}
	}
}

func (r *reader) unknown(w word, use event.PathUse) {
	use.Path, use.Unknown, use.Found = trim(w.text), true, false
	r.use(use)
}

func (r *reader) use(p event.PathUse) {
	switch {
	case slices.Contains(r.facts.Paths, p):
	case r.files == maxFacts && !p.Alias, len(r.facts.Paths)-r.files == maxFacts && p.Alias:
		r.unclear("it names too many files")
	default:
		r.facts.Paths = append(r.facts.Paths, p)
		if !p.Alias {
			r.files++
		}
	}
}

func (r *reader) unclear(why string) {
	if !slices.Contains(r.facts.Unclear, why) && len(r.facts.Unclear) < 20 {
		r.facts.Unclear = append(r.facts.Unclear, why)
	}
}

// risks are the risk classes, from the lowest to the highest.
var risks = []event.Risk{
	"", event.RiskRead, event.RiskWrite, event.RiskExecute, event.RiskDelete, event.RiskSend, event.RiskPermission, event.RiskFinancial, event.RiskUnknown,
}

func (r *reader) atLeast(risk event.Risk) {
	if slices.Index(risks, risk) > slices.Index(risks, r.risk) {
		r.risk = risk
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// trim shortens a text of a command line.
func trim(s string) string {
	if len(s) > event.MaxWord {
		return strings.ToValidUTF8(s[:event.MaxWord], "") + event.WordCut
	}
	return s
}
