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
			text("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
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
			return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), age(q.CreationTimestamp, now)}
		}),
	}
}
