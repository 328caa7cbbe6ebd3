package find

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/tool"
)

// index finds tools by words (BM25).
type index struct {
	tools []tool.Tool
	// terms holds for each tool the weighted frequency of each word, lengths the sums
	// of these, and in the number of tools with each word.
	terms   []map[string]float64
	lengths []float64
	in      map[string]int
	mean    float64
	alike   map[string][]string
}

// The weights of a word in a name, a title, a description and the name of an
// argument, and the constants of BM25.
const (
	inName        = 3
	inTitle       = 2
	inDescription = 1
	inArgument    = 1

	saturation    = 1.2
	normalisation = 0.75
)

func newIndex(tools []tool.Tool) *index {
	x := &index{tools: slices.Clone(tools), in: map[string]int{}, alike: alike()}
	slices.SortFunc(x.tools, func(a, b tool.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range x.tools {
		terms, length := map[string]float64{}, 0.0
		add := func(text string, weight float64) {
			for _, w := range words(text) {
				terms[w] += weight
				length += weight
			}
		}
		add(t.Name, inName)
		add(t.Title, inTitle)
		add(t.Description, inDescription)
		for _, name := range argumentsOf(t.Schema) {
			add(name, inArgument)
		}
		for w := range terms {
			x.in[w]++
		}
		x.terms, x.lengths = append(x.terms, terms), append(x.lengths, length)
		x.mean += length / float64(len(x.tools))
	}
	return x
}

// argumentsOf returns the names of a schema's properties, sorted.
func argumentsOf(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// named returns the tools that match a name or a pattern; nil if the query is neither,
// or matches none.
func (x *index) named(query string) (hits []int) {
	if strings.ContainsFunc(query, unicode.IsSpace) {
		return nil
	}
	// A star also matches a slash in a name.
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	for i, t := range x.tools {
		if ok, err := path.Match(flat(query), flat(t.Name)); ok && err == nil || t.Name == query {
			hits = append(hits, i)
		}
	}
	return hits
}

// rank returns the tools that contain words of the query, best first.
func (x *index) rank(query string) []int {
	asked := map[string]float64{}
	for _, w := range words(query) {
		for _, other := range x.alike[w] {
			asked[other] = max(asked[other], likeness)
		}
		asked[w] = 1
	}
	scores := make([]float64, len(x.tools))
	var hits []int
	for i := range x.tools {
		for _, w := range slices.Sorted(maps.Keys(asked)) {
			often := x.terms[i][w]
			if often == 0 {
				continue
			}
			n, in := float64(len(x.tools)), float64(x.in[w])
			rare := math.Log(1 + (n-in+0.5)/(in+0.5))
			scores[i] += asked[w] * rare * often * (saturation + 1) / (often + saturation*(1-normalisation+normalisation*x.lengths[i]/x.mean))
		}
		if scores[i] > 0 {
			hits = append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return hits
}

// alike maps a word of a query to synonyms in names of tools.
func alike() map[string][]string {
	by := map[string][]string{}
	for _, group := range []string{
		"create add new make open insert", "get read show fetch view", "list all show", "search find look query",
		"update change edit modify set", "delete remove drop", "send post write", "run execute start",
	} {
		same := words(group)
		for _, w := range same {
			by[w] = append(by[w], same...)
		}
	}
	return by
}

// likeness is the weight of a synonym.
const likeness = 0.5

// common are words without information about a tool.
const common = " a an and are as at be by do does for from has have i in into is it its me my of on or that the this to which who with you your "

// words returns the words of a text without their endings; createIssue is two words.
func words(text string) []string {
	var all []string
	var word []rune
	flush := func() {
		if w := strings.ToLower(string(word)); w != "" && !strings.Contains(common, " "+w+" ") {
			all = append(all, stem(w))
		}
		word = word[:0]
	}
	before := rune(0)
	for _, r := range text {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !letter || unicode.IsUpper(r) && unicode.IsLower(before) {
			flush()
		}
		if letter {
			word = append(word, r)
		}
		before = r
	}
	flush()
	return all
}

// stem removes the endings of English words.
func stem(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && len(w) > 3:
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ing", "ed"} {
		if rest, ok := strings.CutSuffix(w, ending); ok && len(rest) > 2 {
			w = rest
			if n := len(w); w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
				w = w[:n-1]
			}
			break
		}
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}
