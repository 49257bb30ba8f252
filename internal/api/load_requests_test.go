// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// TestHostilePatches (RS-01): JSON patches that make much of little (thousands of copies of a large value, doublings,
// tests without end) are refused before they have cost much, and leave the object as it was. ATTACK B2.
func TestHostilePatches(t *testing.T) {
	b := besiege(t)
	big := sized("big", 900_000)
	if _, err := b.admin.CoreV1().ConfigMaps(b.ns).Create(t.Context(), big, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	steps := func(n int, step func(i int) string) []byte {
		all := make([]string, n)
		for i := range all {
			all[i] = step(i)
		}
		return []byte("[" + strings.Join(all, ",") + "]")
	}
	patch := func(what string, body []byte) blow {
		return blow{what: what, verb: http.MethodPatch, path: "/api/v1/namespaces/NS/configmaps/big", kind: jsonPatch,
			body: body, codes: []int{http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}}
	}
	for _, row := range []blow{
		patch("9000 copies of 900 kB",
			steps(9000,
				func(i int) string { return fmt.Sprintf(`{"op":"copy","from":"/data/a","path":"/data/c%d"}`, i) })),
		patch("doubled 40 times",
			steps(40, func(i int) string { return fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/d%d"}`, i) })),
		patch("one value doubled in itself 30 times", steps(30,
			func(int) string { return `{"op":"copy","from":"/metadata","path":"/metadata/annotations"}` })),
		patch("moved 9999 times", steps(9999, func(i int) string {
			return fmt.Sprintf(`{"op":"move","from":"/data/%s","path":"/data/%s"}`, []string{"a", "b"}[i%2],
				[]string{"b", "a"}[i%2])
		})),
		patch("30000 tests",
			steps(30000, func(int) string { return `{"op":"test","path":"/metadata/name","value":"big"}` })),
	} {
		t.Run(row.what, func(t *testing.T) {
			if strings.HasPrefix(row.what, "moved") { // within bounds
				row.codes = []int{http.StatusOK}
			}
			b.strike(t, row)
		})
	}
	now, err := b.admin.CoreV1().ConfigMaps(b.ns).Get(t.Context(), "big", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(now.Data) != 1 || len(now.Data["a"])+len(now.Data["b"]) != len(big.Data["a"]) {
		t.Errorf("the object has %d values", len(now.Data))
	}
	b.unmoved("big", "kube-root-ca.crt")
}

// TestHostileQueries (RS-01): selectors, places in a list and numbers that are out of all proportion are refused, or
// mean what they say. ATTACK B3.
func TestHostileQueries(t *testing.T) {
	b := besiege(t)
	values := make([]string, 60000)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	served, bad := []int{http.StatusOK}, []int{http.StatusBadRequest}
	list := func(what string, codes []int, query ...string) blow {
		q := url.Values{}
		for i := 0; i < len(query); i += 2 {
			q.Set(query[i], query[i+1])
		}
		return blow{what: what, verb: http.MethodGet, path: "/api/v1/namespaces/NS/configmaps?" + q.Encode(),
			codes: codes}
	}
	most := fmt.Sprint(int64(math.MaxInt64))
	for _, row := range []blow{
		list("labels with one of 60000 values", served, "labelSelector", "a in ("+strings.Join(values, ",")+")"),
		list("10000 labels", served, "labelSelector", "l"+strings.Join(values[:10000], ",l")),
		list("labels in 100000 brackets", bad, "labelSelector", "a in "+strings.Repeat("(", 100_000)),
		list("10000 fields", bad, "fieldSelector", strings.Join(values[:10000], "=x,")+"=x"),
		list("one name 10000 times", served, "fieldSelector",
			strings.TrimSuffix(strings.Repeat("metadata.name=x,", 10000), ",")),
		list("a place of 20 kB", bad, "limit", "1", "continue", strings.Repeat("A", 20_000)),
		// {"v":…,"rv":1,"start":"/../../secrets"}
		list("a place outside of the namespace", bad, "limit", "1", "continue",
			"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvLi4vLi4vc2VjcmV0cyJ9"),
		list("a limit of 2^63-1", served, "limit", most),
		list("a negative limit", []int{http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity}, "limit",
			"-"+most),
		list("a revision of 2^63-1", []int{http.StatusGatewayTimeout, http.StatusBadRequest,
			http.StatusInternalServerError}, "resourceVersion", most, "resourceVersionMatch", "Exact"),
		list("a time of 2^63-1 s", served, "timeoutSeconds", most),
		{what: "a log without a node, in numbers of 2^63-1", verb: http.MethodGet,
			path: "/api/v1/namespaces/NS/pods/none/log?tailLines=" + most + "&limitBytes=" + most + "&sinceSeconds=" +
				most, codes: []int{http.StatusNotFound}},
	} {
		t.Run(row.what, func(t *testing.T) {
			if said := b.strike(t, row); strings.Contains(said, "kind\":\"Secret") || strings.Contains(said, "panic") {
				t.Errorf("said %.300s", said)
			}
		})
	}
	t.Run("a query of 2 MB", func(t *testing.T) { // over HTTP/1: clients of HTTP/2 are told the limit and keep to it
		config := bearer(t, "jane-token")
		config.NextProtos = []string{"http/1.1"}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		resp, err := client.Get(b.url + "/api/v1/configmaps?labelSelector=" + strings.Repeat("x", 2<<20))
		if err != nil {
			return // cut off before all was sent
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answered with %d", resp.StatusCode)
		}
	})
	b.unmoved("kube-root-ca.crt")
}

// TestHostileExpressions (RS-01): what a policy's expression costs is bounded, whatever the object that it is asked
// about: the object is refused, and those that cost little are taken. ATTACK B4.
func TestHostileExpressions(t *testing.T) {
	b := besiege(t)
	policy := validatingPolicy("", rule("configmaps", admissionv1.Create),
		"object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b + c + d != ''))))")
	enforce(t, b.admin, b.ns, policy, nil)
	data := make([]string, 2000)
	for i := range data {
		data[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	maps := "/api/v1/namespaces/NS/configmaps"
	said := b.strike(t, blow{verb: http.MethodPost, path: maps, kind: jsonType,
		body:  configMapJSON(`},"data":{` + strings.Join(data, ",") + "}"),
		codes: []int{http.StatusUnprocessableEntity, http.StatusForbidden}})
	if !strings.Contains(said, "cost") {
		t.Errorf("refused with %.500s", said)
	}
	b.strike(t, blow{verb: http.MethodPost, path: maps, kind: jsonType, body: configMapJSON(`},"data":{"a":"b"}`),
		codes: []int{http.StatusCreated}})
	b.unmoved("x", "kube-root-ca.crt")
}

// TestManyEvents (RS-01): events that a user writes without end are stored, to be forgotten in time, and kept in no
// memory of the server's. ATTACK B9.
func TestManyEvents(t *testing.T) {
	b := besiege(t)
	jane := clientOf(t, bearer(t, "jane-token"))
	note := strings.Repeat("x", 1000)
	write := func(round int) uint64 {
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range 60 {
					e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e-%d-%d-%d", round, w, i)},
						Message: note, Reason: fmt.Sprint("R", i),
						InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: b.ns, Name: fmt.Sprint("p", i)}}
					if _, err := jane.CoreV1().Events(b.ns).Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	first := write(0)
	second := write(1)
	// Etcd, in the same process here, keeps its last writes. Else nothing is held.
	const most = 16 << 20
	if second > first+most {
		t.Errorf("%d kB more are held after 480 more events", (second-first)>>10)
	}
	t.Logf("%d kB, then %d kB", first>>10, second>>10)
	b.unmoved("kube-root-ca.crt")
}

// TestManyWatches (RS-01): one user's watches have a limit, for all connections together; what is too many is told so,
// others are served meanwhile, and what was given up can be had again. ATTACK B11.
func TestManyWatches(t *testing.T) {
	const limit, clients, each = 40, 4, 15
	s, admin := hardServer(t, "/manywatches", func(s *api.Serving) { s.MaxWatchesPerUser = limit })
	c := clientOf(t, admin)
	ns := namespace(t, c)
	as := func(user string) *http.Client {
		config := rest.AnonymousClientConfig(admin)
		var err error
		if config.CertData, config.KeyData, err = s.CA().Client(user, nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		return client
	}
	_, err := c.RbacV1().RoleBindings(ns).Create(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "joe"}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	watch := func(ctx context.Context, client *http.Client) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			admin.Host+"/api/v1/namespaces/"+ns+"/configmaps?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp.StatusCode
	}
	codes := map[int]int{}
	var jane *http.Client
	for range clients {
		jane = as("jane")
		for range each {
			codes[watch(ctx, jane)]++
		}
	}
	if codes[http.StatusOK] != limit || codes[http.StatusTooManyRequests] != clients*each-limit {
		t.Errorf("of %d watches: %v", clients*each, codes)
	}
	if code := watch(t.Context(), as("joe")); code != http.StatusOK {
		t.Errorf("another user's watch: %d", code)
	}
	if _, err := c.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	leave()
	// The server hears of it when the streams are reset.
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return watch(t.Context(), jane) == http.StatusOK, nil
		}); err != nil {
		t.Errorf("after all were given up: %v", err)
	}
}
