// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// workload is about something that was to make pods, and has made none.
func (r *report) workload() Answer {
	w := r.Workload
	if w == nil {
		w = &Workload{}
	}
	a := Answer{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name,
		State: fmt.Sprintf("%d pods wanted, none there", w.Wanted)}
	switch words, from := r.refusal(w); {
	case w.Suspended:
		r.add(&Finding{Where: w.Kind + " " + w.Name, What: "it is suspended, so it makes no pods"}).
			fact("spec.suspend", "true").try("kubectl patch %s %s -p '{\"spec\":{\"suspend\":false}}'",
			strings.ToLower(w.Kind), w.Name)
	case words != "":
		r.add(Refusal(w.Kind+" "+w.Name, words, from))
	case w.Wanted == 0:
		r.add(&Finding{Where: w.Kind + " " + w.Name, What: "it wants no pods"}).
			fact("spec.replicas", "0").try("kubectl scale %s %s --replicas=1", strings.ToLower(w.Kind), w.Name)
	default:
		f := r.add(&Finding{Where: w.Kind + " " + w.Name, What: "it has no pods yet, and nothing says why"})
		f.fact("status", "%d pods wanted", w.Wanted)
		f.try("wait a moment, then look at its events: kubectl describe %s %s", strings.ToLower(w.Kind), w.Name)
	}
	r.finish(&a)
	return a
}

// refusal is what the API server answered when a pod was to be made, and where that stands.
func (r *report) refusal(w *Workload) (words, from string) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.Reason != "FailedCreate" && e.Reason != "ReplicaSetCreateError" {
			continue
		}
		_, text, ok := strings.Cut(e.Message, "Error creating: ")
		if !ok {
			text = e.Message
		}
		words, from = text, fmt.Sprintf("%s of %s %s", eventFrom(e), e.InvolvedObject.Kind, e.InvolvedObject.Name)
	}
	for _, c := range w.Conditions {
		if c.Type == "ReplicaFailure" && c.Status == string(corev1.ConditionTrue) {
			words, from = c.Message, c.Of+", status.conditions ReplicaFailure"
		}
	}
	return words, from
}

// quotaWords are those by which a quota refuses a pod.
var quotaWords = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)$`)

// Refusal explains why the API server did not take a pod.
func Refusal(where, words, from string) *Finding {
	f := &Finding{Where: where}
	f.fact(from, "%s", words)
	_, quotaName, _ := strings.Cut(words, "failed quota: ")
	switch m := quotaWords.FindStringSubmatch(words); {
	case m != nil:
		f.What = fmt.Sprintf("its pods are refused by quota %s of the namespace: asked for %s; in use %s; allowed %s",
			m[1], m[2], m[3], m[4])
		f.try("ask for less, free some of it (kubectl describe quota %s), or have the quota raised", m[1])
	case quotaName != "":
		quotaName, needs, _ := strings.Cut(quotaName, ": ")
		f.What = fmt.Sprintf("its pods are refused: with quota %s of the namespace they have to say how much they need",
			quotaName)
		f.fact("quota "+quotaName, "%s", needs)
		f.try("set the requests or limits that it names, or give the namespace a LimitRange with defaults")
	case strings.Contains(words, "usage per "):
		f.What = "its pods are refused by a LimitRange of the namespace"
		f.try("set requests and limits within its bounds: kubectl describe limitrange")
	case strings.Contains(words, "violates PodSecurity"):
		f.What = "its pods are refused by the Pod Security level of the namespace"
		f.try("set what the words name in securityContext, or have the namespace's label pod-security.kubernetes.io/enforce changed")
	case strings.Contains(words, "serviceaccount") && strings.Contains(words, "not found"):
		f.What = "its pods are refused, since their service account does not exist"
		f.try("create it: kubectl create serviceaccount NAME, or correct serviceAccountName")
	case strings.Contains(words, "admission webhook"):
		f.What = "its pods are refused by an admission webhook"
		f.try("do what the webhook's message says, or ask whoever runs it")
	case strings.Contains(words, "failed calling webhook"):
		f.What = "its pods are refused, since an admission webhook does not answer"
		f.try("see to the webhook's own pods: kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations")
	case strings.Contains(words, "priorityclass") || strings.Contains(words, "PriorityClass"):
		f.What = "its pods are refused, since their priority class does not exist"
		f.try("correct priorityClassName, or create the class")
	default:
		f.What = "its pods are refused by the API server"
		f.try("do as the words above say")
	}
	return f
}
