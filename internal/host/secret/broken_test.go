package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/processor"
)

const service = "sk-service-0123456789abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ-and-the-rest-of-it"

func inJSON(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text)
}

func TestWhatLooksLikeAPieceOfAnEncodedValueStays(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "S", Value: service})
	coded := base64.StdEncoding.EncodeToString([]byte(service))
	for name, text := range map[string]string{
		"a beginning":              coded[:60] + "\n" + coded[:60] + "\n",
		"a rest two lines later":   coded[:60] + "\nanother line\n" + coded[60:],
		"a rest that is far away":  coded[:60] + strings.Repeat("\n", 70) + coded[60:],
		"a rest on the same line":  coded[:60] + " " + coded[60:],
		"what is not written away": coded[:60] + `\x` + coded[60:],
	} {
		if got := r.RedactString(text); got != text {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

// Sixteen MiB of a program's output were once looked at for minutes.
func TestLinesThatEndAgainAndAgainAreLookedAtOnce(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "S", Value: service})
	line := strings.Repeat(hex.EncodeToString([]byte(service[:1]))+"  ", 20)
	redacting := func(unit string) time.Duration {
		text := strings.Repeat(unit, 1<<20/len(unit))
		began := processor.Time(t)
		if got := r.RedactString(text); got != text {
			t.Errorf("%.40q has become %.40q", text, got)
		}
		return processor.Time(t) - began
	}
	plain := redacting(line)
	for _, end := range []string{` \n`, `\r`} {
		if took := redacting(line + strings.Repeat(end, 40)); took > 6*plain {
			t.Errorf("with %q it takes %s, without %s", end, took, plain)
		}
	}
}
