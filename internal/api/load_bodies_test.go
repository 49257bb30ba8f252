// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	jsonType, yamlType, protoType = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
	jsonPatch, applyPatch         = "application/json-patch+json", "application/apply-patch+yaml"
)

// blow is a request that is meant to cost the server much more than its sender.
type blow struct {
	what, verb, path, kind string
	body                   []byte
	header                 map[string]string
	codes                  []int
}

// besieger is jane, who may edit one namespace: what she sends is limited by nothing but the server.
type besieger struct {
	t      *testing.T
	ns     string
	url    string
	client *http.Client
	admin  kubernetes.Interface
}

func besiege(t *testing.T) *besieger {
	t.Helper()
	c := client(t)
	b := &besieger{t: t, ns: namespace(t, c), url: adminConfig(t).Host, admin: c}
	_, err := c.RbacV1().RoleBindings(b.ns).Create(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "jane"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b.client, err = rest.HTTPClientFor(bearer(t, "jane-token")); err != nil {
		t.Fatal(err)
	}
	b.client.Timeout = 2 * time.Minute // never, not slow
	return b
}

// Each blow may make the server allocate so much in all: it says what it costs however busy the machine is. What a body
// of 3 MiB costs when it is read, decoded, and put into an error is some tens of MB.
const mostAllocated = 600 << 20

// strike sends the blow, and checks the answer and the cost.
func (b *besieger) strike(t *testing.T, s blow) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), s.verb, b.url+strings.ReplaceAll(s.path, "NS", b.ns),
		bytes.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", s.kind)
	for k, v := range s.header {
		req.Header.Set(k, v)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	said := string(text[:min(len(text), 300)])
	if !slices.Contains(s.codes, resp.StatusCode) {
		t.Errorf("answered with %d, want %v: %s", resp.StatusCode, s.codes, said)
	}
	if cost := after.TotalAlloc - before.TotalAlloc; cost > mostAllocated {
		t.Errorf("%d MB were allocated for a body of %d kB", cost>>20, len(s.body)>>10)
	} else {
		t.Logf("%d, %d MB allocated, answer of %d bytes: %s", resp.StatusCode, cost>>20, len(text), said)
	}
	return string(text)
}

// unmoved: the server serves others, and nothing of what was refused is there.
func (b *besieger) unmoved(names ...string) {
	b.t.Helper()
	if text, err := b.admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(b.t.Context()); err != nil {
		b.t.Errorf("/readyz: %v: %s", err, text)
	}
	maps, err := b.admin.CoreV1().ConfigMaps(b.ns).List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range maps.Items {
		if !slices.Contains(names, m.Name) {
			b.t.Errorf("configmap %s is there", m.Name)
		}
	}
}

func configMapJSON(more string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"` + more + `}`)
}

// TestHostileBodies (RS-01): bodies that are small to send and large to read (nested, aliased, compressed, cut) are
// refused with a code that says so, at a bounded cost. ATTACK B1.
func TestHostileBodies(t *testing.T) {
	b := besiege(t)
	const maps = "/api/v1/namespaces/NS/configmaps"
	refused := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity}
	large := []int{http.StatusRequestEntityTooLarge}
	post := func(what, kind string, body []byte, codes []int) blow {
		return blow{what: what, verb: http.MethodPost, path: maps, kind: kind, body: body, codes: codes}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	for range 64 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	gzipped := post("64 MB in gzip", jsonType, zipped.Bytes(), refused)
	gzipped.header = map[string]string{"Content-Encoding": "gzip"}
	manyLabels := func() []byte {
		var s strings.Builder
		for i := range 60000 {
			fmt.Fprintf(&s, `%q:"v",`, fmt.Sprintf("example.com/label-number-%05d", i))
		}
		return configMapJSON(`,"labels":{` + strings.TrimSuffix(s.String(), ",") + `}}`)
	}()
	laughs := func() []byte {
		var s strings.Builder
		s.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\na0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n")
		for i := range 12 {
			fmt.Fprintf(&s, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9),
				","))
		}
		return []byte(s.String())
	}()
	magic := []byte("k8s\x00")
	rows := []blow{
		gzipped,
		post("YAML aliases of aliases", yamlType, laughs, refused),
		post("60000 labels", jsonType, manyLabels, large),
		{what: "60000 labels applied", verb: http.MethodPatch, path: maps + "/x?fieldManager=jane", kind: applyPatch,
			body: manyLabels, codes: append(large, http.StatusUnprocessableEntity)},
		post("1.6 MB of value", jsonType, configMapJSON(`},"data":{"a":"`+strings.Repeat("x", 1600<<10)+`"}`), refused),
		post("3.2 MB of value", jsonType, configMapJSON(`},"data":{"a":"`+strings.Repeat("x", 3200<<10)+`"}`), large),
		post("protobuf cut off", protoType, append(slices.Clone(magic), 0x0a, 0x7f, 'x'), refused),
		post("protobuf with a length of 2^63", protoType, append(append(slices.Clone(magic), 0x0a),
			binary.AppendUvarint(nil, 1<<63)...), refused),
		post("protobuf groups in groups", protoType, append(slices.Clone(magic), bytes.Repeat([]byte{0x0b}, 1<<20)...),
			refused),
		post("zeros as protobuf", protoType, append(slices.Clone(magic), make([]byte, 1<<20)...), refused),
		post("no protobuf at all", protoType, bytes.Repeat([]byte{0xff}, 1<<20), refused),
		post("CBOR", "application/cbor", bytes.Repeat([]byte{0x81}, 1<<20), refused),
	}
	for _, depth := range []int{300_000, 1_400_000} {
		for _, field := range []string{`},"data":`, `,"annotations":`, `},"unknown":`} {
			rows = append(rows,
				post(fmt.Sprintf("JSON arrays %d deep in %s", depth, field), jsonType,
					configMapJSON(field+strings.Repeat("[", depth)+strings.Repeat("]", depth)), refused),
				post(fmt.Sprintf("JSON objects %d deep in %s", depth/3, field), jsonType,
					configMapJSON(field+strings.Repeat(`{"a":`, depth/3)+"1"+strings.Repeat("}", depth/3)), refused))
		}
		rows = append(rows,
			post(fmt.Sprintf("JSON %d deep that does not end", depth), jsonType, bytes.Repeat([]byte("["), depth),
				refused),
			post(fmt.Sprintf("YAML %d deep", depth), yamlType,
				[]byte("a: "+strings.Repeat("[", depth)+strings.Repeat("]", depth)), refused),
			blow{what: fmt.Sprintf("YAML %d deep applied", depth), verb: http.MethodPatch,
				path: maps + "/x?fieldManager=jane", kind: applyPatch,
				body: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: " +
					strings.Repeat("[", depth) + strings.Repeat("]", depth)), codes: refused})
	}
	for _, row := range rows {
		t.Run(row.what, func(t *testing.T) { b.strike(t, row) })
	}
	b.unmoved("kube-root-ca.crt")
}
