package server

import (
	"context"
	"reflect"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/access"
)

// Whatever a fork may replace is an admin's, also what comes to its body later, but for
// what is named here.
func TestAForksChangesAreAnAdmins(t *testing.T) {
	editors := map[string]bool{"Seq": true, "Window": true, "Message": true, "Limits": true, "Run": true}
	body := reflect.TypeFor[forking]()
	for i := range body.NumField() {
		var f forking
		switch field := reflect.ValueOf(&f).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Int, reflect.Int64:
			field.SetInt(3)
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			t.Fatalf("%s has a type that this test cannot set", body.Field(i).Name)
		}
		for role, may := range map[access.Role]bool{access.Admin: true, access.Editor: editors[body.Field(i).Name]} {
			ctx := context.WithValue(t.Context(), principalKey{}, event.Principal{Name: "ann", Role: string(role)})
			if err := f.mayChange(ctx); (err == nil) != may {
				t.Errorf("%s by an %s: %v", body.Field(i).Name, role, err)
			}
		}
	}
}
