package search_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/tool/internal/search"
)

func TestASearchFindsWhatGoFindsHoweverLongTheLineIs(t *testing.T) {
	long := strings.Repeat("äx\xff", 100_000)
	for _, expr := range []string{`needle`, `^ä`, `e$`, `(?i)NEEDLE\b`, `x{1,40}\xff`, `[^ä]{1,200}n`, `none`, ``, `\xff.`} {
		p, err := search.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"", "a needle", long, long + " needle"} {
			got, err := p.Find(t.Context(), []byte(line))
			if want := regexp.MustCompile(expr).FindIndex([]byte(line)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s in %.20q of %d bytes: got %v, %v, want %v", expr, line, len(line), got, err, want)
			}
		}
	}
}

func TestASearchEndsWithItsContext(t *testing.T) {
	p, err := search.Compile(`.{0,1000}z`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if at, err := p.Find(ctx, []byte(strings.Repeat("x", 1<<20))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", at, err)
	}
}

func TestAPatternThatIsNoneIsRefused(t *testing.T) {
	for _, expr := range []string{"(", strings.Repeat("a", search.MaxPattern+1), strings.Repeat("(a{1,999}){2}", 2)} {
		if _, err := search.Compile(expr); err == nil {
			t.Errorf("%.20s was taken", expr)
		}
	}
}
