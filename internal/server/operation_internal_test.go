package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/access"
)

func TestAnOperationWithoutARoleOrASchemaIsNotServed(t *testing.T) {
	whole := operation{
		method: http.MethodGet, path: "/x", summary: "Does", may: access.Viewer, status: http.StatusOK, service: serves((*Server).health),
	}
	for says, spoil := range map[string]func(*operation){
		"":                   func(*operation) {},
		"is for no role":     func(o *operation) { o.may = "" },
		"for no role":        func(o *operation) { o.may = "owner" },
		"has no schema":      func(o *operation) { o.service = service{handler: o.handler} },
		"GET /x says too li": func(o *operation) { o.status = 0 },
	} {
		o := whole
		spoil(&o)
		_, err := new(Server).routes([]operation{o})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}
