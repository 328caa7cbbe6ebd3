package secret_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/host/secret"
)

func TestARedactorLearnsValues(t *testing.T) {
	r := secret.NewLearner()
	first, second := "access-0123456789", "access-9876543210"
	text := `{"a":"` + first + `","b":"` + base64.StdEncoding.EncodeToString([]byte(second)) + `"}`
	if got, found := r.RedactJSON([]byte(text)); found || string(got) != text {
		t.Errorf("before: %s", got)
	}
	s := secret.NewStream(r)
	begun := s.Write("a token: access-01")
	r.Learn(secret.Secret{Name: "LOGIN", Value: first}, secret.Secret{Name: "LOGIN", Value: "short"})
	r.Learn(secret.Secret{Name: "LOGIN", Value: second})
	if got, _ := r.RedactJSON([]byte(text)); strings.Contains(string(got), first) || !strings.Contains(string(got), `"a":"${secret:LOGIN}","b":"[redacted`) {
		t.Errorf("after: %s", got)
	}
	if got := begun + s.Write(" "+first) + s.End(); strings.Contains(got, first) {
		t.Errorf("a stream that had begun gives %q", got)
	}
	if r.RedactString("short") != "short" {
		t.Error("a value that is too short is learned")
	}
	if names := r.Names(); len(names) != 0 {
		t.Errorf("the names are %q", names)
	}
	declared := secret.NewRedactor(secret.Secret{Name: "KEY", Value: "declared-0123456789"})
	declared.Learn(secret.Secret{Name: "LOGIN", Value: first})
	if got := declared.RedactString(first + " declared-0123456789"); got != "${secret:LOGIN} ${secret:KEY}" {
		t.Errorf("beside a declared one: %s", got)
	}
}

func TestARedactorForgetsTheOldestThatItLearned(t *testing.T) {
	r := secret.NewLearner(secret.Secret{Name: "KEY", Value: "declared-0123456789"})
	value := func(i int) string { return fmt.Sprintf("access-token-%04d", i) }
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r.Learn(secret.Secret{Name: "LOGIN", Value: value(i)})
			_ = r.RedactString(value(i))
		})
	}
	all.Wait()
	for i := range 20 {
		if r.RedactString(value(i)) != "${secret:LOGIN}" {
			t.Errorf("value %d of several goroutines is not known", i)
		}
	}
	for i := range 100 {
		r.Learn(secret.Secret{Name: "LOGIN", Value: value(100 + i)})
	}
	if r.RedactString(value(199)) == value(199) || r.RedactString(value(101)) != value(101) || r.RedactString("declared-0123456789") != "${secret:KEY}" {
		t.Errorf("kept are %s, %s and %s", r.RedactString(value(199)), r.RedactString(value(101)), r.RedactString("declared-0123456789"))
	}
}
