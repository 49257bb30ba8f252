// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The small rules that the others are made of. Each returns the errors of one value at one path.

type errs = field.ErrorList

// oneOf: the value must be given and known.
func oneOf[T ~string](path *field.Path, value T, known ...T) errs {
	switch {
	case value == "":
		return errs{field.Required(path, "")}
	case !slices.Contains(known, value):
		return errs{field.NotSupported(path, value, known)}
	}
	return nil
}

// oneOfIfSet is oneOf for an optional value.
func oneOfIfSet[T ~string](path *field.Path, value *T, known ...T) errs {
	if value == nil {
		return nil
	}
	if !slices.Contains(known, *value) {
		return errs{field.NotSupported(path, *value, known)}
	}
	return nil
}

// required: the text must not be empty.
func required(path *field.Path, value string) errs {
	if value == "" {
		return errs{field.Required(path, "")}
	}
	return nil
}

// valid turns the complaints of a k8s.io/apimachinery/pkg/util/validation function into errors.
func valid(path *field.Path, value any, complaints []string) (all errs) {
	for _, words := range complaints {
		all = append(all, field.Invalid(path, value, words))
	}
	return all
}

// dnsLabel: required, at most 63 of a-z, 0-9 and '-' (RFC 1123).
func dnsLabel(path *field.Path, value string) errs {
	if value == "" {
		return errs{field.Required(path, "")}
	}
	return valid(path, value, validation.IsDNS1123Label(value))
}

// dnsSubdomain: required, DNS labels with dots, at most 253 (RFC 1123).
func dnsSubdomain(path *field.Path, value string) errs {
	if value == "" {
		return errs{field.Required(path, "")}
	}
	return valid(path, value, apivalidation.NameIsDNSSubdomain(value, false))
}

// qualifiedName: a label key such as example.com/name.
func qualifiedName(path *field.Path, value string) errs {
	return valid(path, value, validation.IsQualifiedName(value))
}

// labelValue: at most 63 of letters, digits, '-', '_' and '.'.
func labelValue(path *field.Path, value string) errs {
	return valid(path, value, validation.IsValidLabelValue(value))
}

func nonNegative[T int32 | int64](path *field.Path, value T) errs {
	return apivalidation.ValidateNonnegativeField(int64(value), path)
}

func inRange[T int32 | int64](path *field.Path, value, low, high T) errs {
	if value < low || value > high {
		return errs{field.Invalid(path, value, validation.InclusiveRangeError(int(low), int(high)))}
	}
	return nil
}

func ipAddress(path *field.Path, value string) errs {
	return validation.IsValidIPForLegacyField(path, value, false, nil)
}

// userID and groupID: numbers the kernel knows.
func userID(path *field.Path, id *int64) errs {
	if id == nil {
		return nil
	}
	return valid(path, *id, validation.IsValidUserID(*id))
}

func groupID(path *field.Path, id *int64) errs {
	if id == nil {
		return nil
	}
	return valid(path, *id, validation.IsValidGroupID(*id))
}

// fileMode: permission bits of a file made for the Pod.
func fileMode(path *field.Path, mode *int32) errs {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return errs{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

// descending: a path below some root, which it must not leave.
func descending(path *field.Path, value string) (all errs) {
	if strings.HasPrefix(value, "/") {
		all = append(all, field.Invalid(path, value, "must be a relative path"))
	}
	return append(all, noBacksteps(path, value)...)
}

// noBacksteps: no element of the path may be "..".
func noBacksteps(path *field.Path, value string) errs {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return errs{field.Invalid(path, value, "must not contain '..'")}
	}
	return nil
}

// projectedFile: where a file of a volume made from objects goes. Names that begin with ".." are kept for
// the links by which such volumes are swapped.
func projectedFile(path *field.Path, value string) errs {
	if value == "" {
		return errs{field.Required(path, "")}
	}
	all := descending(path, value)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") && value != ".." {
		all = append(all, field.Invalid(path, value, "must not start with '..'"))
	}
	return all
}

// seen remembers values and reports those that come again.
type seen map[string]bool

func (s seen) unique(path *field.Path, value string) errs {
	if s[value] {
		return errs{field.Duplicate(path, value)}
	}
	s[value] = true
	return nil
}

// fieldName is the last part of a path.
func fieldName(path *field.Path) string {
	name := path.String()
	return name[strings.LastIndex(name, ".")+1:]
}
