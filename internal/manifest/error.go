// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Error is one fault of a manifest.
type Error struct {
	Source  string // file
	Line    int    // from 1; 0 when the fault is the whole file's
	Field   string // path in the object, "spec.containers[0].image"; may be empty
	Message string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Errors are all faults of a file, one per line of its text.
type Errors []*Error

func (es Errors) Error() string {
	text := make([]string, len(es))
	for i, e := range es {
		text[i] = e.Error()
	}
	return strings.Join(text, "\n")
}

var (
	yamlLine   = regexp.MustCompile(`line (\d+): `)
	yamlSource = regexp.MustCompile(`^(error converting YAML to JSON: )?(yaml: )?(unmarshal errors:\s*)?(line \d+: )?`)
	keyTwice   = regexp.MustCompile(`key "?([^"]+)"? already set in map`)
	fieldFault = regexp.MustCompile(`^(unknown|duplicate) field "(.*)"$`)
)

// syntax words the YAML parser's complaint, keeping its line.
func (d document) syntax(err error) *Error {
	line, text := 0, err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
	}
	if m := keyTwice.FindStringSubmatch(text); m != nil {
		return d.fault(line, "", "the key %q is given twice; keep one", m[1])
	}
	text = strings.TrimSpace(yamlSource.ReplaceAllString(text, ""))
	return d.fault(line, "", "malformed YAML: %s", strings.ReplaceAll(text, "\n", "; "))
}

// strict words one of the decoder's strictness faults.
func (d document) strict(err error, where lines, prefix string) *Error {
	m := fieldFault.FindStringSubmatch(err.Error())
	if m == nil {
		return d.fault(0, strings.TrimSuffix(prefix, "."), "%s", err)
	}
	field := prefix + m[2]
	if m[1] == "duplicate" {
		return d.fault(where.of(field), field, "is given twice; keep one")
	}
	return d.fault(where.of(field), field, "unknown field; check the spelling and the indentation")
}

// wrongType words a value of a type other than the field's. Decoders that fields bring themselves (quantities, times)
// do not say where they were: for quantities the document is searched.
func (d document) wrongType(err error, where lines, prefix string) *Error {
	var std *json.UnmarshalTypeError
	if errors.As(err, &std) {
		return d.mismatch(std.Field, std.Value, std.Type.String(), where, prefix)
	}
	if field, value, want, ok := mismatchOf(err); ok {
		return d.mismatch(field, value, want, where, prefix)
	}
	if strings.Contains(err.Error(), "quantities must match") ||
		strings.Contains(err.Error(), "unable to parse quantity") {
		return d.notQuantity(where, prefix, strings.TrimPrefix(err.Error(), "json: "))
	}
	return d.fault(0, strings.TrimSuffix(prefix, "."), "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// notQuantity names the value that is no quantity, or says why if it is not found.
func (d document) notQuantity(where lines, prefix, why string) *Error {
	if field, line, value := where.badQuantity(); field != "" {
		return d.fault(line, field, "%.60q is not a quantity; use for example 500m, 2, 64Mi or 1Gi", value)
	}
	return d.fault(0, strings.TrimSuffix(prefix, "."), "%s", why)
}

// The strict decoder has its own error type that is not exported; its text is stable.
var goMismatch = regexp.MustCompile(`cannot unmarshal (.+) into Go (?:struct field [^.]*\.(\S+)|value) of type (\S+)`)

func mismatchOf(err error) (field, value, want string, ok bool) {
	m := goMismatch.FindStringSubmatch(err.Error())
	if m == nil {
		return "", "", "", false
	}
	return m[2], m[1], m[3], true
}

func (d document) mismatch(field, value, want string, where lines, prefix string) *Error {
	line, exact := where.mismatch(prefix+field, wantKind(want))
	if exact != "" {
		field = exact
	} else {
		field = prefix + field
	}
	return d.fault(line, field, "is %s, must be %s", article(value), wantWords(want))
}

func article(value string) string {
	kind, rest, _ := strings.Cut(value, " ")
	switch kind {
	case "string":
		return "a string"
	case "number":
		return strings.TrimSpace("the number " + rest)
	case "bool":
		return "a boolean"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return value
}

type want int

const (
	wantAny want = iota
	wantInt
	wantFloat
	wantString
	wantBool
	wantList
	wantMap
)

func wantKind(goType string) want {
	goType = strings.TrimLeft(goType, "*")
	switch {
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return wantInt
	case strings.HasPrefix(goType, "float"):
		return wantFloat
	case goType == "bool":
		return wantBool
	case goType == "string":
		return wantString
	case strings.HasPrefix(goType, "[]"):
		return wantList
	case strings.HasPrefix(goType, "map["):
		return wantMap
	}
	return wantAny
}

func wantWords(goType string) string {
	switch wantKind(goType) {
	case wantInt:
		return "a whole number within range"
	case wantFloat:
		return "a number"
	case wantBool:
		return "true or false"
	case wantString:
		return "a string (put it in quotes)"
	case wantList:
		return "a list (each element after a dash)"
	case wantMap:
		return "an object (key: value)"
	}
	name := goType[strings.LastIndex(goType, ".")+1:]
	return "of type " + name
}
