package wiregate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Scenario is one recorded conversation, of one exchange or several.
type Scenario struct {
	ID       string   `json:"id"`
	API      string   `json:"api"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Tags     []string `json:"tags"`
	// ToolLoop says that every request after the first only feeds back results.
	ToolLoop  bool       `json:"is_tool_loop"`
	Exchanges []Exchange `json:"-"`
}

// Exchange is one request with its answer.
type Exchange struct {
	// Name is the scenario's id, with the exchange's number where there are
	// several.
	Name string
	// Request is the body that was sent, nil where the recorder kept none.
	Request json.RawMessage
	// Stream says that the answer is a stream of events.
	Stream   bool
	Status   int
	Header   http.Header
	Body     []byte
	Expected Expected
}

// load reads every scenario of a wire format, recorded and derived, in the
// order of their names. It skips the test where there are no fixtures.
func load(t testing.TB, api string) []Scenario {
	t.Helper()
	root, ok := Fixtures()
	if !ok {
		t.Skip("no fixtures: ../shared/fixtures/wire is not beside this checkout")
	}
	var all []Scenario
	for _, folder := range []string{"wire", "wire-derived"} {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*", "meta.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			s, err := loadScenario(filepath.Dir(path))
			if err != nil {
				t.Fatalf("fixture %s: %v", path, err)
			}
			if s.API == api {
				all = append(all, *s)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("the fixtures hold no scenario of %s", api)
	}
	return all
}

func loadScenario(dir string) (*Scenario, error) {
	s := &Scenario{}
	if err := readJSON(filepath.Join(dir, "meta.json"), s); err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(dir, "[0-9][0-9]"))
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		dirs = []string{dir}
	}
	for _, d := range dirs {
		x, err := loadExchange(d)
		if err != nil {
			return nil, err
		}
		x.Name = s.ID
		if len(dirs) > 1 {
			x.Name += "/" + filepath.Base(d)
		}
		s.Exchanges = append(s.Exchanges, *x)
	}
	return s, nil
}

func loadExchange(dir string) (*Exchange, error) {
	var head struct {
		Response struct {
			Status  int                 `json:"status"`
			Headers map[string][]string `json:"headers"`
		} `json:"response"`
	}
	if err := readJSON(filepath.Join(dir, "http.json"), &head); err != nil {
		return nil, err
	}
	x := &Exchange{Status: head.Response.Status, Header: http.Header{}}
	for name, values := range head.Response.Headers {
		for _, v := range values {
			x.Header.Add(name, v)
		}
	}
	if err := readJSON(filepath.Join(dir, "expected.json"), &x.Expected); err != nil {
		return nil, err
	}
	if err := x.Expected.addSearches(); err != nil {
		return nil, err
	}
	var err error
	if x.Request, err = os.ReadFile(filepath.Join(dir, "request.json")); os.IsNotExist(err) {
		x.Request = nil
	} else if err != nil {
		return nil, err
	}
	x.Body, err = os.ReadFile(filepath.Join(dir, "response.sse"))
	if x.Stream = err == nil; x.Stream {
		return x, nil
	}
	if x.Body, err = os.ReadFile(filepath.Join(dir, "response.json")); err != nil {
		return nil, fmt.Errorf("no body: %w", err)
	}
	return x, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
