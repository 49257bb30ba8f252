// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// fieldRequirements are the requirements of a review's field selector. Those that cannot be parsed are left out and
// reported: without them the request is a wider one, so they cannot allow anything.
func fieldRequirements(f *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	switch {
	case f == nil:
		return nil, nil
	case f.RawSelector != "":
		selector, err := fields.ParseSelector(f.RawSelector)
		if err != nil {
			return nil, err
		}
		return selector.Requirements(), nil
	}
	var out fields.Requirements
	var errs []error
	for _, r := range f.Requirements {
		operator := selection.Equals
		switch {
		case len(r.Values) != 1:
			errs = append(errs, fmt.Errorf("fieldSelector in does not yet support multiple values: %v", r.Values))
			continue
		case r.Operator == metav1.FieldSelectorOpIn:
		case r.Operator == metav1.FieldSelectorOpNotIn:
			operator = selection.NotEquals
		default:
			errs = append(errs, fmt.Errorf("field selector operator %q is not supported", r.Operator))
			continue
		}
		out = append(out, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
	}
	return out, errors.Join(errs...)
}

// labelRequirements is fieldRequirements for labels.
func labelRequirements(l *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	switch {
	case l == nil:
		return nil, nil
	case l.RawSelector != "":
		selector, err := labels.Parse(l.RawSelector)
		if err != nil {
			return nil, err
		}
		requirements, _ := selector.Requirements()
		return requirements, nil
	}
	operators := map[metav1.LabelSelectorOperator]selection.Operator{
		metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
		metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	var out labels.Requirements
	var errs []error
	for _, r := range l.Requirements {
		operator, known := operators[r.Operator]
		if !known {
			errs = append(errs, fmt.Errorf("%q is not a valid label selector operator", r.Operator))
			continue
		}
		requirement, err := labels.NewRequirement(r.Key, operator, slices.Clone(r.Values))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, *requirement)
	}
	return out, errors.Join(errs...)
}
