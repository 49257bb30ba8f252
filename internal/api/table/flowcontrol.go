// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strconv"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"
)

func flowSchemaPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("PriorityLevel", "The priority level that requests of this schema go to"),
			number("MatchingPrecedence", "Of the schemas that match, the one with the lowest number holds"),
			text("DistinguisherMethod", "What tells the flows of this schema apart"), ageColumn(),
			text("MissingPL", "Whether the priority level is missing")),
		Row: rowOf(func(s *flowcontrolv1.FlowSchema, now time.Time) []any {
			method := "<none>"
			if s.Spec.DistinguisherMethod != nil {
				method = string(s.Spec.DistinguisherMethod.Type)
			}
			missing := "?"
			for _, c := range s.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
					missing = string(c.Status)
				}
			}
			return []any{s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method,
				age(s.CreationTimestamp, now), missing}
		}),
	}
}

func priorityLevelPrinter() Printer {
	return Printer{
		Columns: columns(nameColumn(), text("Type", "Whether requests of this level are limited"),
			text("NominalConcurrencyShares", "The level's share of what the server serves at a time"),
			text("Queues", "How many queues the level has"),
			text("HandSize", "From how many queues one is chosen for a request"),
			text("QueueLengthLimit", "How many requests one queue holds"), ageColumn()),
		Row: rowOf(func(p *flowcontrolv1.PriorityLevelConfiguration, now time.Time) []any {
			shares, queues, hand, length := "<none>", "<none>", "<none>", "<none>"
			count := func(n int32) string { return strconv.Itoa(int(n)) }
			if e := p.Spec.Exempt; e != nil {
				shares = count(ptr.Deref(e.NominalConcurrencyShares, 0))
			}
			if l := p.Spec.Limited; l != nil {
				shares = count(ptr.Deref(l.NominalConcurrencyShares, 0))
				if q := l.LimitResponse.Queuing; q != nil {
					queues, hand, length = count(q.Queues), count(q.HandSize), count(q.QueueLengthLimit)
				}
			}
			return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, age(p.CreationTimestamp, now)}
		}),
	}
}
