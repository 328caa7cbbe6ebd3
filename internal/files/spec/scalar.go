package spec

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, d.expects(v), "is %s", describe(n))
		return
	}
	ok := false
	switch v.Kind() {
	case reflect.String:
		if n.Tag != "!!str" && len(d.allowed) > 0 {
			d.fail(n, path, choice(d.allowed), "is %s", describe(n))
			return
		}
		if n.Tag != "!!str" {
			d.fail(n, path, "a text; write it in quotes: "+strconv.Quote(n.Value), "is %s", n.Value)
			return
		}
		v.SetString(n.Value)
		ok = true
	case reflect.Bool:
		if ok = n.Tag == "!!bool"; ok {
			v.SetBool(strings.EqualFold(n.Value, "true"))
		}
	case reflect.Int, reflect.Int64:
		var i int64
		if i, ok = wholeNumber(n); ok {
			v.SetInt(i)
		}
	case reflect.Float64:
		var f float64
		if f, ok = number(n); ok {
			v.SetFloat(f)
		}
	}
	if !ok {
		d.fail(n, path, expectation(v), "is %s", describe(n))
	}
}

// wholeNumber reads an integer. A leading zero is refused: some YAML readers
// take 010 for eight.
func wholeNumber(n *yaml.Node) (int64, bool) {
	text := strings.ReplaceAll(n.Value, "_", "")
	digits := strings.TrimLeft(text, "+-")
	if n.Tag != "!!int" || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return 0, false
	}
	i, err := strconv.ParseInt(text, 0, 64)
	return i, err == nil
}

func number(n *yaml.Node) (float64, bool) {
	if i, ok := wholeNumber(n); ok {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return f, n.Tag == "!!float" && err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}
