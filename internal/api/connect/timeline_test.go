// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/timeline"
)

// A pod's timeline comes from its node, that of a pod that is gone from whichever node remembers it; where there is none, the answer's
// cause says why (PL-15). What nodes remember of a namespace that was deleted is not shown to whoever has another of that name now (RS-11,
// ATTACK A38).
func TestTimeline(t *testing.T) {
	c := newCluster(t)
	c.Pods["plain"].UID = "u"
	c.Pods["homeless"].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes: too little cpu"}}
	for _, tc := range []struct {
		name, path string
		code       int
		want       []string
	}{
		{"from its node, its own and no earlier pod's", "plain/timeline", 200, []string{`"name":"plain"`, `"asked":"uid=u"`}},
		{"what is asked of the node", "plain/timeline?uid=u&watch=1&path=x&other=y", 200, []string{`"asked":"uid=u&watch=1"`}},
		{"of a pod that is gone", "former/timeline", 200, []string{`"name":"former"`, `"asked":""`, "and more"}},
		{"of an earlier pod of its name", "plain/timeline?uid=before&watch=1", 200, []string{`"name":"plain"`, `"asked":"uid=before&watch=1"`, "and more"}},
		{"of a pod of an earlier namespace", "foreign/timeline", 404, []string{"there is no pod foreign in namespace default, and no node remembers one", timeline.CauseUnknown}},
		{"of one by its uid", "foreign/timeline?uid=x", 404, []string{"no node remembers one"}},
		{"that makes no sense", "odd/timeline", 404, []string{"no node remembers one"}},
		{"that nobody remembers", "never/timeline", 404, []string{"there is no pod never in namespace default, and no node remembers one", timeline.CauseUnknown}},
		{"on no node", "homeless/timeline", 404, []string{"has no node yet, so nothing has happened to it: 0/1 nodes: too little cpu", timeline.CauseUnbound}},
		{"new to its node", "new/timeline", 404, []string{"node one has not heard of pod default/new", timeline.CauseUnknown}},
		{"of a node of another make", "leaving/timeline", 404, []string{"node one keeps no timelines", timeline.CauseNotKept}},
		{"of a node in trouble", "many/timeline", 503, []string{"node one answered 500", "out of order"}},
		{"of a dead node", "lost/timeline", 503, []string{`cannot reach the kubelet of node \"dead\"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, body := fetch(t, c.URL+"/api/v1/namespaces/default/pods/"+tc.path)
			for _, want := range tc.want {
				if code != tc.code || !strings.Contains(body, want) {
					t.Errorf("%d %s; want %d, %s", code, body, tc.code, want)
				}
			}
		})
	}
	if m := (&Timeline{}).ConnectMethods(); len(m) != 1 || m[0] != http.MethodGet {
		t.Errorf("it can be asked by %v", m)
	}
}
