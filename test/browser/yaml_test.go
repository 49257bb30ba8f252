// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/test/e2e"
)

// object is what a text of YAML says.
func object(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return out
}

const yamlText = `document.querySelector(".yaml .file-text")?.textContent`

// UI-05 UI-08: a pod's YAML says what kubectl's says, follows the pod, comes as a file, and has managed fields where
// they are asked for.
func TestYAML(t *testing.T) {
	s := space(t)
	pod := e2e.NewPod("web", e2e.Sh("echo 'a: b'\n# no comment\n"+e2e.Idle))
	pod.Annotations = map[string]string{"wherry.test/text": "on", "wherry.test/lines": "one\n  two\n",
		"wherry.test/backwards": "\u202etxt"}
	s.Create(pod)
	s.WaitReady("web")
	tab := open(t, s)
	tab.View("pod/yaml", s, "web")
	tab.Until("show YAML", yamlText+`?.includes("kind: Pod")`)
	tab.Sees("wherry kubectl get pods web -n " + s.Namespace + " -o yaml")
	shown := Get[string](tab, yamlText)
	if is, want := object(t, shown), object(t, s.Kubectl("get", "pod", "web", "-o", "yaml").Out); !reflect.DeepEqual(is,
		want) {
		t.Errorf("the page shows\n%s\nkubectl %v", shown, want)
	}
	if strings.Contains(shown, "\u202e") || strings.Contains(shown, "managedFields") {
		t.Errorf("the page shows\n%s", shown)
	}
	folder, done := tab.downloads()
	tab.Click("Download")
	if got := tab.downloaded(done, filepath.Join(folder, "web.yaml")); got != shown {
		t.Errorf("the file has\n%s", got)
	}
	tab.Click("Managed fields")
	tab.Until("show managed fields", yamlText+`.includes("managedFields:")`)
	tab.Sees("--show-managed-fields")
	s.Kubectl("label", "pod", "web", "tier=front")
	tab.Until("follow the pod", yamlText+`.includes("tier: front")`)
	s.Delete("web")
	tab.Sees("This pod is gone")
	tab.Until("show the last of it", yamlText+`.includes("tier: front")`)
}

// UI-05 UI-08: what pods come from, and services, are a click away as YAML, and are followed.
func TestYAMLOfWorkloads(t *testing.T) {
	s := space(t)
	s.Kubectl("create", "deployment", "front", "--image", "localhost/none:1", "--replicas", "0")
	s.Kubectl("create", "service", "clusterip", "door", "--tcp", "80")
	tab := open(t, s)
	tab.Go("/ui/workloads?namespace=" + s.Namespace)
	tab.Click("front")
	tab.Until("show YAML", yamlText+`?.includes("kind: Deployment")`)
	tab.Sees("wherry kubectl get deployments front -n " + s.Namespace + " -o yaml")
	s.Kubectl("annotate", "deployment", "front", "wherry.test/note=seen")
	tab.Until("follow the deployment", yamlText+`.includes("wherry.test/note: seen")`)
	s.Kubectl("delete", "deployment", "front")
	tab.Sees("It is gone")
	tab.Go("/ui/services?namespace=" + s.Namespace)
	tab.Click("door")
	tab.Until("show YAML", yamlText+`?.includes("kind: Service")`)
	tab.Go("/ui/object?kind=Secret&namespace=" + s.Namespace + "&name=x")
	tab.Sees("There is no such page")
}
