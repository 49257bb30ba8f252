// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const goodPod = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: main
    image: example/web:1
    ports:
    - containerPort: 80
`

func TestDecodeTakesEveryForm(t *testing.T) {
	cases := map[string]struct {
		in    string
		kinds []string
		line  int // of the last object
	}{
		"one document":                       {goodPod, []string{"Pod"}, 1},
		"several documents, some empty":      {"---\n# nothing\n---\n" + goodPod + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", []string{"Pod", "ConfigMap"}, 14},
		"text after the document marker":     {"--- # the pod\n" + goodPod, []string{"Pod"}, 1},
		"JSON":                               {"\n{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\n\t\"metadata\":{\"name\":\"s\"}}", []string{"Secret"}, 2},
		"JSON values one after another":      {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}` + "\n" + `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t"}}`, []string{"Secret", "Secret"}, 2},
		"YAML flow style that looks as JSON": {"{apiVersion: v1, kind: Secret, metadata: {name: s}}", []string{"Secret"}, 1},
		"a List":                             {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n- {apiVersion: v1, kind: Namespace, metadata: {name: ns}}\n", []string{"Secret", "Namespace"}, 1},
		"windows line ends and a BOM":        {"\xef\xbb\xbf" + strings.ReplaceAll(goodPod, "\n", "\r\n"), []string{"Pod"}, 1},
		"generateName":                       {strings.Replace(goodPod, "name: web", "generateName: web-", 1), []string{"Pod"}, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode("f.yaml", []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, o := range got {
				kinds = append(kinds, o.GVK.Kind)
			}
			if fmt.Sprint(kinds) != fmt.Sprint(c.kinds) {
				t.Errorf("kinds %v, want %v", kinds, c.kinds)
			}
			if last := got[len(got)-1]; last.Line != c.line {
				t.Errorf("the last object starts at line %d, want %d", last.Line, c.line)
			}
		})
	}
}

func TestDecodeKeepsValues(t *testing.T) {
	got, err := Decode("f.yaml", []byte(goodPod))
	if err != nil {
		t.Fatal(err)
	}
	pod, ok := got[0].Object.(*corev1.Pod)
	if !ok || pod.Name != "web" || pod.Spec.Containers[0].Ports[0].ContainerPort != 80 {
		t.Errorf("decoded %#v", got[0].Object)
	}
}

// Each kind of bad input has a message that names file, line, field and what is wrong.
func TestDecodeRefuses(t *testing.T) {
	edit := func(old, new string) string { return strings.Replace(goodPod, old, new, 1) }
	cases := map[string]struct{ in, want string }{
		"malformed YAML":      {edit("  name: web", "  name: [web"), `f.yaml:4: malformed YAML: `},
		"a tab":               {edit("  name: web", "\tname: web"), `malformed YAML: found character that cannot start any token`},
		"unknown field":       {edit("image:", "imagee:"), `f.yaml:8: spec.containers[0].imagee: unknown field; check the spelling and the indentation`},
		"unknown top field":   {goodPod + "specs: {}\n", `f.yaml:11: specs: unknown field`},
		"field twice":         {goodPod + "kind: Pod\n", `the key "kind" is given twice; keep one`},
		"wrong type: string":  {edit("containerPort: 80", `containerPort: "80"`), `f.yaml:10: spec.containers[0].ports[0].containerPort: is a string, must be a whole number within range`},
		"wrong type: number":  {edit("image: example/web:1", "image: 1"), `f.yaml:8: spec.containers[0].image: is the number, must be a string (put it in quotes)`},
		"wrong type: bool":    {edit("name: main", "name: yes"), `spec.containers[0].name: is a boolean, must be a string (put it in quotes)`},
		"wrong type: list":    {edit("  containers:\n  - name: main\n    image: example/web:1\n    ports:\n    - containerPort: 80\n", "  containers: {name: main}\n"), `f.yaml:6: spec.containers: is an object, must be a list (each element after a dash)`},
		"wrong type: object":  {edit("metadata:\n  name: web", "metadata: web"), `f.yaml:3: metadata: is a string, must be of type ObjectMeta`},
		"number too large":    {edit("containerPort: 80", `containerPort: 99999999999`), `f.yaml:10: spec.containers[0].ports[0].containerPort: `},
		"endless quantity":    {edit("    ports:", "    resources: {limits: {memory: \"1e-100000000\"}}\n    ports:"), `f.yaml:9: spec.containers[0].resources.limits.memory: "1e-100000000" is not a quantity`},
		"endless page size":   {edit("    ports:", "    resources: {limits: {hugepages-1e-100000000: 2Mi}}\n    ports:"), `a number in it has an exponent of -10000 or below`},
		"bad quantity":        {edit("    ports:", "    resources: {limits: {memory: lots}}\n    ports:"), `f.yaml:9: spec.containers[0].resources.limits.memory: "lots" is not a quantity`},
		"no apiVersion":       {edit("apiVersion: v1\n", ""), `f.yaml:1: apiVersion: is missing; a pod's is v1`},
		"no kind":             {edit("kind: Pod\n", ""), `f.yaml:1: kind: is missing; a pod's is Pod`},
		"bad apiVersion":      {edit("v1", "a/b/c"), `f.yaml:1: apiVersion: "a/b/c" is not of the form group/version`},
		"unknown kind":        {edit("kind: Pod", "kind: Pood"), `f.yaml:2: kind: kind "Pood" of apiVersion "v1" is unknown here; check the spelling of both`},
		"no name":             {edit("  name: web\n", "  labels: {}\n"), `f.yaml:3: metadata.name: is missing; give name or generateName`},
		"name too long":       {edit("web", strings.Repeat("x", 300)), `f.yaml:4: metadata.name: has 300 characters; at most 253 are allowed`},
		"namespace too long":  {edit("name: web", "name: web\n  namespace: "+strings.Repeat("x", 64)), `f.yaml:5: metadata.namespace: has 64 characters; at most 63 are allowed`},
		"second document":     {goodPod + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndate: {}\n", `f.yaml:15: date: unknown field`},
		"item of a list":      {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  date: {}\n", `f.yaml:7: items[0].date: unknown field`},
		"list in a list":      {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List}\n", `f.yaml:4: items[0].kind: a List may not contain another List`},
		"empty file":          {"\n# nothing\n---\n", `f.yaml: contains no objects; write at least one with apiVersion and kind`},
		"a scalar":            {"hello\n", `f.yaml:1: must be an object with apiVersion, kind and metadata`},
		"binary":              {"\xff\xfe\x00", `f.yaml: is not UTF-8 text; is it really a manifest?`},
		"larger than 1.5 MiB": {edit("name: web", "name: web\n  annotations: {a: "+strings.Repeat("x", MaxObjectBytes)+"}"), `f.yaml:1: the object is 1.5 MiB; the store takes at most 1.5 MiB`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode("f.yaml", []byte(c.in))
			if err == nil {
				t.Fatalf("took it: %v", got)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("says\n  %s\nwant\n  %s", err, c.want)
			}
			var all Errors
			if !errors.As(err, &all) {
				t.Errorf("error of type %T, want Errors", err)
			}
		})
	}
}

// All faults of a file are told at once.
func TestDecodeTellsAllFaults(t *testing.T) {
	in := strings.NewReplacer("image:", "imagee:", "ports:", "portz:").Replace(goodPod) + "---\nkind: Pod\n"
	_, err := Decode("f.yaml", []byte(in))
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Errorf("got %d faults, want 3:\n%v", len(all), err)
	}
}

func TestReadRefusesAnEndlessFile(t *testing.T) {
	_, err := Read("-", endless{})
	if err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

// Whatever is read, decoding ends, does not panic, and gives objects or a message with the file's name.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(goodPod))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":null}}]}`))
	f.Add([]byte("a: &a [*a]\n---\n--- x"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {a.b/c: [1]}}\nspec: {containers: [{ports: {containerPort: x}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Decode("fuzz.yaml", data)
		if (err == nil) == (len(objects) == 0) {
			t.Fatalf("%d objects and error %v", len(objects), err)
		}
		if err != nil && !strings.Contains(err.Error(), "fuzz.yaml") {
			t.Fatalf("no file in %q", err)
		}
	})
}
