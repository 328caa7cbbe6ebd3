package gemini_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/gemini"
)

// What is built of streamed arguments is bounded by what is read of them, so that
// a few bytes of a hostile service cannot take the process down. The same request
// is likely to give the same again, at the same price.
func TestArgumentsInPiecesAreBuiltWithinBounds(t *testing.T) {
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"jsonPath":"$.a[%d]","numberValue":%d}`, i, i)
		}
		return b.String()[1:]
	}
	call := func(pieces string) string { return `{"functionCall":{"name":"ls","partialArgs":[` + pieces + `]}}` }
	at := func(path string) string { return `{"jsonPath":"$` + path + `","numberValue":1}` }
	for name, c := range map[string]struct {
		parts string
		whole bool
	}{
		"a long list":              {call(list(40_000) + "," + at(".a[39999]")), true},
		"a gap":                    {call(at(".a[2]")), true},
		"a giant array":            {call(at(".a[100000]")), false},
		"large arrays of one call": {call(at(".a[40000]") + "," + at(".b[40000]")), false},
		"large arrays of calls":    {call(at(".a[40000]")) + "," + call(at(".a[40000]")), false},
		"an array beyond numbers":  {call(at(".a[99999999999999999999]")), false},
		"arrays in arrays":         {call(at(strings.Repeat("[40000]", 3))), false},
		"depth":                    {call(at(strings.Repeat(".a", 5000))), false},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `data: {"candidates":[{"content":{"parts":[`+c.parts+`]},"finishReason":"STOP"}]}`+"\n\n")
		}))
		resp, err := gemini.New(gemini.Options{BaseURL: srv.URL}).Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
		srv.Close()
		if (err == nil) != c.whole || c.whole && len(resp.Parts.ToolCalls()) != 1 || !c.whole && llm.AsError(err).Class != llm.ClassInvalid {
			t.Errorf("%s is read as %d calls, %v", name, len(resp.Parts.ToolCalls()), err)
		}
	}
}
