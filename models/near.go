package models

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/llm"
)

// CheckName rejects a name that is a misspelling of a known model, such as
// claude-sonnet-4.5 for claude-sonnet-4-5: the call would fail, and the price would be
// unknown. The error is a [*NearNameError].
//
// A name is a misspelling if its numbers are those of a known model's name and its
// words are too, except for their order, for case and punctuation, or for one letter of
// one word. Another number or another word means another model, which may be newer than
// the table. It does not check names in the config's models, names at another address
// than the provider's own, and those of gateways, which contain a maker
// (openai/gpt-oss-20b).
func (r *Resolver) CheckName(target string) error {
	provider, name, _ := strings.Cut(target, "/")
	if _, listed := r.Lookup(target); listed || strings.Contains(name, "/") || !r.atOwnAddress(provider) {
		return nil
	}
	near := r.near(providerOf(r.pricedAs(target)), name)
	if near == "" {
		return nil
	}
	return &NearNameError{Name: target, Near: provider + "/" + near}
}

// NearNameError is the error of [Resolver.CheckName]. It is an [llm.ErrUnknownModel].
type NearNameError struct {
	// Name is the requested name, Near the known model.
	Name, Near string
}

// Error returns both names.
func (e *NearNameError) Error() string {
	return fmt.Sprintf("%v: %s: did you mean %s?", llm.ErrUnknownModel, e.Name, e.Near)
}

// Is makes errors.Is(err, [llm.ErrUnknownModel]) true.
func (e *NearNameError) Is(target error) bool { return target == llm.ErrUnknownModel }

// atOwnAddress reports whether a provider is known and is called at its own address.
func (r *Resolver) atOwnAddress(provider string) bool {
	s, ok := r.service(provider)
	if !ok || s.custom || s.local {
		return false
	}
	own := cmp.Or(services[provider].baseURL, s.wire.baseURL)
	return hostOf(cmp.Or(s.baseURL, own)) == hostOf(own)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// near returns the known model of a provider that a name misspells, or "".
func (r *Resolver) near(provider, name string) string {
	table, err := r.known()
	if err != nil {
		return ""
	}
	best, fewest := "", 2
	for known := range table.Models {
		if providerOf(known) != provider {
			continue
		}
		known = strings.TrimPrefix(known, provider+"/")
		d, is := slips(name, known)
		if is && (d < fewest || d == fewest && known < best) {
			best, fewest = known, d
		}
	}
	return best
}

// slips reports whether a name misspells a known one, and by how many letters they
// differ: 0 or 1.
func slips(name, known string) (letters int, near bool) {
	if squashed(name) == squashed(known) {
		return 0, true
	}
	words, digits := partsOf(name)
	others, otherDigits := partsOf(known)
	if digits != otherDigits {
		return 0, false
	}
	for _, word := range slices.Clone(words) {
		if i := slices.Index(others, word); i >= 0 {
			others = slices.Delete(others, i, i+1)
			words = slices.Delete(words, slices.Index(words, word), slices.Index(words, word)+1)
		}
	}
	if len(words)+len(others) == 0 {
		return 0, true
	}
	return 1, len(words) == 1 && len(others) == 1 && oneSlip(words[0], others[0])
}

// squashed returns a name without the most common differences.
func squashed(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, name)
}

// partsOf returns the words of a name, and the digits of its numbers in order.
func partsOf(name string) (words []string, digits string) {
	words = strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return !unicode.IsLetter(c) })
	return words, strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) {
			return c
		}
		return -1
	}, name)
}

// oneSlip reports whether words differ by one extra, missing or wrong letter, or two
// swapped ones. In short words each letter matters, and an extra final letter names a
// variant (flash, flashx).
func oneSlip(a, b string) bool {
	if len(a) < 3 || len(b) < 3 {
		return false
	}
	for a[0] == b[0] {
		if a, b = a[1:], b[1:]; a == "" || b == "" {
			return false
		}
	}
	switch {
	case len(a) > len(b):
		return a[1:] == b
	case len(a) < len(b):
		return a == b[1:]
	case len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]:
		return true
	}
	return a[1:] == b[1:]
}
