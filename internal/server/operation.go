package server

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/rules/access"
)

// operation is one operation of the API. Router, authorisation and document are
// derived from the table of all operations.
type operation struct {
	method, path string
	// event is its name over Socket.IO, "" if it is not available there.
	event string
	// summary describes it in one line.
	summary string
	// may is the lowest role that may perform it.
	may access.Role
	// status is the status of an answer; also lists other possible ones.
	status int
	also   []int
	// streams reports whether Accept: text/event-stream streams the items.
	streams bool
	// times is whether a request with an unknown outcome may be repeated.
	times times
	// problems lists the problems besides those that every operation may have.
	problems []kind
	service
}

// times is how often an operation may be done for one request.
type times bool

// notTwice is for an operation that has an effect each time.
const notTwice times = true

// service performs an operation, and has the types of its input and output.
type service struct {
	query, body, answer reflect.Type
	handler             func(*Server) handler
}

// apiRequest is one request for an operation.
type apiRequest[Q, B any] struct {
	*http.Request
	w     http.ResponseWriter
	query Q
	body  B
	// status replaces the table's status of the answer if it is set.
	status int
}

// none stands for missing parameters or a missing body.
type none struct{}

// errAnswered is returned by a function that has already written its answer.
var errAnswered = errors.New("server: answered already")

// serves returns the service of a function. The function receives a request whose
// parameters and body are already validated.
func serves[Q, B, A any](do func(*Server, *apiRequest[Q, B]) (A, error)) service {
	return service{
		query: reflect.TypeFor[Q](), body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		handler: func(s *Server) handler {
			return func(w http.ResponseWriter, r *http.Request, status int) error {
				a := apiRequest[Q, B]{Request: r, w: w, status: status}
				if err := readQuery(r, &a.query); err != nil {
					return err
				}
				if r.Method == http.MethodPost {
					if err := readBody(r, fieldsOf(&a.body)...); err != nil {
						return err
					}
				}
				answer, err := do(s, &a)
				if err == nil {
					s.write(w, r, a.status, "application/json", answer)
				}
				if errors.Is(err, errAnswered) {
					return nil
				}
				return err
			}
		},
	}
}

// handler answers a request with a status, or returns an error.
type handler func(w http.ResponseWriter, r *http.Request, status int) error

// String returns the method and the path.
func (o operation) String() string { return o.method + " " + o.path }

// pattern returns the operation's path for the router, which would treat the root
// alone as a prefix of all paths.
func (o operation) pattern() string {
	if o.path == "/" {
		return "/{$}"
	}
	return o.path
}

// wrong returns why an operation cannot be served: without a role access would be
// undefined, and without types so would its format.
func (o operation) wrong() error {
	switch {
	case !o.may.Known():
		return fmt.Errorf("server: %s is for no role", o)
	case o.query == nil || o.body == nil || o.answer == nil || o.handler == nil:
		return fmt.Errorf("server: %s has no schema", o)
	case o.summary == "" || o.status == 0:
		return fmt.Errorf("server: %s says too little", o)
	}
	return nil
}

// all returns the problems that an operation may have.
func (o operation) all() []kind {
	common := []kind{kindToken, kindForbidden, kindBusy, kindQuery, kindClosed, kindUnavailable, kindInternal}
	if strings.Contains(o.path, "{id}") {
		common = append(common, kindNotFound, kindDamaged)
	}
	if o.method == http.MethodPost {
		common = append(common, kindMediaType, kindTooLarge, kindBody, kindKey, kindUnderway, kindReused, kindUnknown)
	}
	return append(common, o.problems...)
}

// routes returns the router of a table. A request with a wrong method receives the
// allowed methods, and an unknown path refers to the list of operations.
func (s *Server) routes(table []operation) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, o := range table {
		if err := o.wrong(); err != nil {
			return nil, err
		}
		allowed[o.pattern()] = append(allowed[o.pattern()], o.method)
		answer := s.auditing(o, s.idempotent(o, o.handler(s)))
		mux.Handle(o.method+" "+o.pattern(), s.counted(o, func(w http.ResponseWriter, r *http.Request) {
			if err := access.Authorise(principalOf(r.Context()), o.may); err != nil {
				s.refuse(w, r, err)
			} else if err := answer(w, r, o.status); err != nil {
				s.fail(w, r, err)
			}
		}))
	}
	mux.Handle(socketPath, s.sockets)
	for path, methods := range allowed {
		slices.Sort(methods)
		takes := strings.Join(methods, ", ")
		mux.Handle(path, s.handle(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", takes)
			return kindMethod.problem("use "+takes, "%s takes no %s", r.URL.Path, r.Method)
		}))
	}
	mux.Handle("/", s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		return kindNotFound.problem("the paths of this server are listed at /openapi.json", "there is nothing at %s", r.URL.Path)
	}))
	return mux, nil
}

// handle turns a function that returns an error into a handler.
func (s *Server) handle(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}
