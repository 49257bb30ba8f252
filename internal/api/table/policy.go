// SPDX-License-Identifier: Apache-2.0

package table

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

func priorityClassPrinter() Printer {
	doc := schedulingv1.PriorityClass{}.SwaggerDoc()
	return Printer{
		Columns: columns(
			nameColumn(),
			metav1.TableColumnDefinition{Name: "Value", Type: "integer", Description: doc["value"]},
			metav1.TableColumnDefinition{Name: "Global-Default", Type: "boolean", Description: doc["globalDefault"]},
			ageColumn(),
			text("PreemptionPolicy", doc["preemptionPolicy"]),
		),
		Row: rowOf(func(p *schedulingv1.PriorityClass, now time.Time) []any {
			return []any{p.Name, int64(p.Value), p.GlobalDefault, age(p.CreationTimestamp, now),
				string(ptr.Deref(p.PreemptionPolicy, corev1.PreemptLowerPriority))}
		}),
	}
}

func runtimeClassPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Handler", nodev1.RuntimeClass{}.SwaggerDoc()["handler"]), ageColumn()),
		Row: rowOf(func(c *nodev1.RuntimeClass, now time.Time) []any {
			return []any{c.Name, c.Handler, age(c.CreationTimestamp, now)}
		}),
	}
}

// imagePolicyPrinter prints which images may be used where.
func imagePolicyPrinter() Printer {
	return Printer{
		Columns: columns(
			nameColumn(),
			text("Namespaces", "The namespaces it is about"),
			text("Allow", "Patterns of the images that may be used"),
			text("Deny", "Patterns of the images that must not be used"),
			metav1.TableColumnDefinition{Name: "Digest", Type: "boolean",
				Description: "Whether an image must be named by its digest"},
			text("Action", "What becomes of an image that may not be used"),
			ageColumn(),
		),
		Row: rowOf(func(p *imagepolicy.ImagePolicy, now time.Time) []any {
			namespaces := shortList(p.Spec.Namespaces, "<all>")
			if p.Spec.NamespaceSelector != nil {
				namespaces = metav1.FormatLabelSelector(p.Spec.NamespaceSelector)
			}
			return []any{
				p.Name, namespaces, shortList(p.Spec.Allow, none), shortList(p.Spec.Deny, none), p.Spec.RequireDigest,
				string(p.Spec.Action), age(p.CreationTimestamp, now),
			}
		}),
	}
}
