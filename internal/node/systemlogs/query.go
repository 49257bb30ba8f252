// SPDX-License-Identifier: Apache-2.0

package systemlogs

import (
	"fmt"
	"net/url"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of a question.
const (
	mostLines    = 100000
	mostServices = 4
	longestName  = 256
)

// Query is a question.
type Query struct {
	Services []string
	File     string // below the folder; then there are no services

	Since, Until *time.Time
	Lines, Boot  *int
	Pattern      string
}

// Asked reports whether a request is a question at all, and not for a file or a list of files.
func Asked(v url.Values) bool {
	for _, name := range []string{"query", "sinceTime", "untilTime", "tailLines", "boot", "pattern"} {
		if v.Has(name) {
			return true
		}
	}
	return false
}

// Parse reads a question, or says all that is wrong with it.
func Parse(v url.Values) (q Query, errs field.ErrorList) {
	var files []string
	path := field.NewPath
	for _, one := range v["query"] {
		switch {
		case strings.ContainsAny(one, `/\`):
			files = append(files, strings.ReplaceAll(one, `\`, "/"))
		case strings.TrimSpace(one) != "":
			q.Services = append(q.Services, one)
		}
	}
	switch {
	case len(files) == 0 && len(q.Services) == 0 && v.Has("query"):
		errs = append(errs, field.Invalid(path("query"), v["query"], "may not be empty"))
	case len(files) == 0 && len(q.Services) == 0:
		errs = append(errs, field.Required(path("query"), "cannot be empty with options"))
	case len(files) > 0 && len(q.Services) > 0:
		errs = append(errs, field.Invalid(path("query"), fmt.Sprintf("%v, %v", files, q.Services),
			"cannot specify a file and service"))
	case len(files) > 1:
		errs = append(errs, field.Invalid(path("query"), files, "cannot specify more than one file"))
	case len(files) == 1:
		q.File = files[0]
	}
	errs = append(errs, services(q.Services)...)
	q.Since, errs = moment(v, "sinceTime", errs)
	q.Until, errs = moment(v, "untilTime", errs)
	q.Lines, errs = number(v, "tailLines", errs)
	q.Boot, errs = number(v, "boot", errs)
	q.Pattern = v.Get("pattern")
	return q, append(errs, q.check()...)
}

// check judges what was read.
func (q *Query) check() (errs field.ErrorList) {
	if q.File != "" && q.options() {
		errs = append(errs, field.Invalid(field.NewPath("query"), q.File, "cannot specify file with options"))
	}
	if q.Since != nil && q.Until != nil && q.Since.After(*q.Until) {
		errs = append(errs, field.Invalid(field.NewPath("untilTime"), q.Until.String(), "must be after `sinceTime`"))
	}
	if q.Boot != nil && *q.Boot > 0 {
		errs = append(errs, field.Invalid(field.NewPath("boot"), *q.Boot, "must be less than 1"))
	}
	if q.Lines != nil && (*q.Lines < 0 || *q.Lines > mostLines) {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *q.Lines,
			validation.InclusiveRangeError(0, mostLines)))
	}
	if _, err := syntax.Parse(q.Pattern, syntax.Perl); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("pattern"), q.Pattern, err.Error()))
	}
	return errs
}

// options reports whether anything but the names is asked for.
func (q *Query) options() bool {
	return q.Since != nil || q.Until != nil || q.Lines != nil || q.Boot != nil || q.Pattern != ""
}

func services(names []string) (errs field.ErrorList) {
	at := field.NewPath("query")
	for _, name := range names {
		switch {
		case len(name) > longestName:
			errs = append(errs, field.Invalid(at, name, "length must be less than 100"))
		case !safe(name):
			errs = append(errs, field.Invalid(at, name, "input contains unsupported characters"))
		}
	}
	if len(names) > mostServices {
		errs = append(errs, field.TooMany(at, len(names), mostServices))
	}
	return errs
}

// safe: letters, digits and what units' names have besides; none is an option.
func safe(name string) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:@", c)) {
			return false
		}
	}
	return true
}

func moment(v url.Values, name string, errs field.ErrorList) (*time.Time, field.ErrorList) {
	text := v.Get(name)
	if text == "" {
		return nil, errs
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, append(errs, field.Invalid(field.NewPath(name), text, "invalid time format"))
	}
	return &at, errs
}

func number(v url.Values, name string, errs field.ErrorList) (*int, field.ErrorList) {
	text := v.Get(name)
	if text == "" {
		return nil, errs
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, append(errs, field.Invalid(field.NewPath(name), text, err.Error()))
	}
	return &n, errs
}

// arguments are journalctl's for a question about services.
func (q *Query) arguments(of []string) []string {
	const layout = "2006-1-2 15:4:5"
	args := []string{"--utc", "--no-pager", "--output=short-precise"}
	if q.Since != nil {
		args = append(args, "--since="+q.Since.UTC().Format(layout))
	}
	if q.Until != nil {
		args = append(args, "--until="+q.Until.UTC().Format(layout))
	}
	if q.Lines != nil {
		args = append(args, "--pager-end", "--lines="+strconv.Itoa(*q.Lines))
	}
	for _, name := range of {
		args = append(args, "--unit="+name)
	}
	if q.Pattern != "" {
		args = append(args, "--grep="+q.Pattern)
	}
	if q.Boot != nil {
		args = append(args, "--boot="+strconv.Itoa(*q.Boot))
	}
	return args
}
