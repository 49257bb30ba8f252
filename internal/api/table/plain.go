// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func namespacePrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Status", "The status of the namespace"), ageColumn()),
		Row: rowOf(func(ns *corev1.Namespace, now time.Time) []any {
			return []any{ns.Name, string(ns.Status.Phase), age(ns.CreationTimestamp, now)}
		}),
	}
}

func configMapPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Data", corev1.ConfigMap{}.SwaggerDoc()["data"]), ageColumn()),
		Row: rowOf(func(cm *corev1.ConfigMap, now time.Time) []any {
			return []any{cm.Name, int64(len(cm.Data) + len(cm.BinaryData)), age(cm.CreationTimestamp, now)}
		}),
	}
}

func podTemplatePrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Containers", "Names of each container in the template."),
			text("Images", "Images referenced by each container in the template."),
			text("Pod Labels", "The labels for the pod template.")),
		Row: rowOf(func(t *corev1.PodTemplate, _ time.Time) []any {
			var names, images []string
			for _, c := range t.Template.Spec.Containers {
				names, images = append(names, c.Name), append(images, c.Image)
			}
			return []any{t.Name, strings.Join(names, ","), strings.Join(images, ","),
				labels.FormatLabels(t.Template.Labels)}
		}),
	}
}

func componentStatusPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Status", "Status of the component conditions"),
			text("Message", "Message of the component conditions"), text("Error", "Error of the component conditions")),
		Row: rowOf(func(c *corev1.ComponentStatus, _ time.Time) []any {
			status, message, problem := "Unknown", "", ""
			if i := slices.IndexFunc(c.Conditions,
				func(c corev1.ComponentCondition) bool { return c.Type == corev1.ComponentHealthy }); i >= 0 {
				status, message, problem = "Unhealthy", c.Conditions[i].Message, c.Conditions[i].Error
				if c.Conditions[i].Status == corev1.ConditionTrue {
					status = "Healthy"
				}
			}
			return []any{c.Name, status, message, problem}
		}),
	}
}

func secretPrinter() Printer {
	doc := corev1.Secret{}.SwaggerDoc()
	return Printer{
		Columns: columns(nameColumn(), text("Type", doc["type"]), text("Data", doc["data"]), ageColumn()),
		Row: rowOf(func(s *corev1.Secret, now time.Time) []any {
			return []any{s.Name, string(s.Type), int64(len(s.Data)), age(s.CreationTimestamp, now)}
		}),
	}
}

func serviceAccountPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Secrets", corev1.ServiceAccount{}.SwaggerDoc()["secrets"]), ageColumn()),
		Row: rowOf(func(sa *corev1.ServiceAccount, now time.Time) []any {
			return []any{sa.Name, int64(len(sa.Secrets)), age(sa.CreationTimestamp, now)}
		}),
	}
}

func leasePrinter() Printer {
	doc := coordinationv1.LeaseSpec{}.SwaggerDoc()
	return Printer{
		Columns: columns(nameColumn(), text("Holder", doc["holderIdentity"]), ageColumn()),
		Row: rowOf(func(l *coordinationv1.Lease, now time.Time) []any {
			return []any{l.Name, ptr.Deref(l.Spec.HolderIdentity, ""), age(l.CreationTimestamp, now)}
		}),
	}
}

func resourceQuotaPrinter() Printer {
	return Printer{
		Columns: columns(
			nameColumn(),
			text("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
			text("Limit",
				"Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
			ageColumn(),
		),
		Row: rowOf(func(q *corev1.ResourceQuota, now time.Time) []any {
			var requests, limits []string
			for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
				used, hard := q.Status.Used[name], q.Status.Hard[name]
				item := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
				if strings.HasPrefix(string(name), "limits") {
					limits = append(limits, item)
				} else {
					requests = append(requests, item)
				}
			}
			return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "),
				age(q.CreationTimestamp, now)}
		}),
	}
}
