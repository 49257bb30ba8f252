// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	none    = "<none>"
	unknown = "<unknown>"
	unset   = "<unset>"

	// wide is the priority of a column that only "-o wide" shows.
	wide = 1
)

// Printer prints objects of one kind.
type Printer struct {
	// Columns are the headings; every row has one cell for each.
	Columns []metav1.TableColumnDefinition
	// Row gives the cells of obj as seen at now. The error is non-nil only for an object of a type the
	// printer does not know.
	Row func(obj runtime.Object, now time.Time) ([]any, error)
	// Conditions, if set, gives the conditions of the row, by which a client may filter finished objects.
	Conditions func(obj runtime.Object) []metav1.TableRowCondition
}

// For returns the printer of a kind, and whether the kind has one of its own. Without one it is that of Default.
func For(kind string) (Printer, bool) {
	switch kind {
	case "Pod":
		return podPrinter(), true
	case "PodMetrics":
		return podMetricsPrinter(), true
	case "NodeMetrics":
		return nodeMetricsPrinter(), true
	case "Node":
		return nodePrinter(), true
	case "PodTemplate":
		return podTemplatePrinter(), true
	case "ComponentStatus":
		return componentStatusPrinter(), true
	case "Event":
		return eventPrinter(), true
	case "Namespace":
		return namespacePrinter(), true
	case "Service":
		return servicePrinter(), true
	case "Endpoints":
		return endpointsPrinter(), true
	case "EndpointSlice":
		return endpointSlicePrinter(), true
	case "ConfigMap":
		return configMapPrinter(), true
	case "Secret":
		return secretPrinter(), true
	case "ServiceAccount":
		return serviceAccountPrinter(), true
	case "Lease":
		return leasePrinter(), true
	case "ResourceQuota":
		return resourceQuotaPrinter(), true
	case "PriorityClass":
		return priorityClassPrinter(), true
	case "RuntimeClass":
		return runtimeClassPrinter(), true
	case "ImagePolicy":
		return imagePolicyPrinter(), true
	case "RoleBinding":
		return roleBindingPrinter(), true
	case "ClusterRoleBinding":
		return clusterRoleBindingPrinter(), true
	case "CertificateSigningRequest":
		return certificateSigningRequestPrinter(), true
	case "FlowSchema":
		return flowSchemaPrinter(), true
	case "PriorityLevelConfiguration":
		return priorityLevelPrinter(), true
	case "DebugRun":
		return debugRunPrinter(), true
	case "LimitRange", "Role", "ClusterRole":
		return createdAtPrinter(), true
	}
	if p, ok := admissionPrinter(kind); ok {
		return p, true
	}
	return Default(), false
}

// Default prints any object: its name and its age.
func Default() Printer {
	return Printer{
		Columns: columns(nameColumn(), ageColumn()),
		Row: func(obj runtime.Object, now time.Time) ([]any, error) {
			m, err := meta.Accessor(obj)
			if err != nil {
				return nil, fmt.Errorf("%T has no metadata to print: %w", obj, err)
			}
			return []any{m.GetName(), age(m.GetCreationTimestamp(), now)}, nil
		},
	}
}

// createdAtPrinter prints kinds of which Kubernetes shows the creation time rather than the age.
func createdAtPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), metav1.TableColumnDefinition{
			Name: "Created At", Type: "date", Description: metaDoc("creationTimestamp"),
		}),
		Row: func(obj runtime.Object, _ time.Time) ([]any, error) {
			m, err := meta.Accessor(obj)
			if err != nil {
				return nil, fmt.Errorf("%T has no metadata to print: %w", obj, err)
			}
			return []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)}, nil
		},
	}
}

// rowOf makes a Row of a function over one Go type.
func rowOf[T runtime.Object](cells func(obj T, now time.Time) []any) func(runtime.Object, time.Time) ([]any, error) {
	return func(obj runtime.Object, now time.Time) ([]any, error) {
		typed, ok := obj.(T)
		if !ok {
			var want T
			return nil, fmt.Errorf("cannot print %T as %T", obj, want)
		}
		return cells(typed, now), nil
	}
}

func columns(c ...metav1.TableColumnDefinition) []metav1.TableColumnDefinition { return c }

func nameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metaDoc("name")}
}

func ageColumn() metav1.TableColumnDefinition {
	return text("Age", metaDoc("creationTimestamp"))
}

func text(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

func wideText(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: wide, Description: description}
}

func metaDoc(field string) string { return metav1.ObjectMeta{}.SwaggerDoc()[field] }

// age is the time since t in the form of kubectl ("5m", "3d4h").
func age(t metav1.Time, now time.Time) string { return since(t.Time, now) }

func since(t, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t))
}

// orElse returns s, or otherwise when s is empty.
func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// shortList joins at most three items and says how many more there are.
func shortList(items []string, empty string) string {
	const most = 3
	switch {
	case len(items) == 0:
		return empty
	case len(items) > most:
		return fmt.Sprintf("%s + %d more...", strings.Join(items[:most], ","), len(items)-most)
	}
	return strings.Join(items, ",")
}
