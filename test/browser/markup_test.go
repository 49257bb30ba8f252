// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

const evil = `<img class=evil src=/ui/nothing onerror="document.title='taken'"><a class=evil href="javascript:alert(1)">go</a><script class=evil>document.title='taken'</script>`

// UI-04: whatever a pod says of itself, in whichever field, is shown as it is written, or not, and no element comes of
// it.
func TestNothingIsMarkup(t *testing.T) {
	s := space(t)
	// a file's name has no slash
	evilName := `<img class=evil src=x onerror=document.title='taken'>`
	front := e2e.Named("front",
		e2e.Sh(`mkdir -p /srv; echo other > "/srv/$NAME"; echo "$EVIL"; echo "{\"level\":\"$LEVEL\",\"msg\":\"$LEVEL\"}"; echo "$EVIL" > /dev/termination-log; printf '\033[31m%s\033[0m\n' "$EVIL"; exit 1`))
	front.Env = []corev1.EnvVar{{Name: "EVIL", Value: evil}, {Name: "LEVEL", Value: "<b class=evil>bad</b>"},
		{Name: "NAME", Value: evilName}}
	front.Args = []string{evil}
	back := e2e.Named("back",
		e2e.Sh(`mkdir -p /srv; cd /srv; echo "$EVIL" > "$NAME"; mkdir "$NAME.d"; ln -s "$NAME" link; `+e2e.Idle))
	back.Env = []corev1.EnvVar{{Name: "EVIL", Value: evil}, {Name: "NAME", Value: evilName}}
	back.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo '" +
			strings.ReplaceAll(evil, "'", `'\''`) + "'; exit 1"}}}}
	third := e2e.Named("third", e2e.Sh(""))
	third.Command = []string{evil}
	pod := e2e.NewPod("web", front, back, third)
	pod.Annotations = map[string]string{"wherry.test/evil": evil}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "wherry.test/gate"}}
	s.Create(pod)
	s.WaitRestarts("web", "front", 1)
	s.WaitEvent("web", "Unhealthy", "class=evil")
	p := s.Get("web")
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "wherry.test/gate", Status: "False",
		Reason: "Evil", Message: evil})
	if _, err := s.Client.CoreV1().Pods(s.Namespace).UpdateStatus(s.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Logf("no condition with that message: %v", err)
	}
	tab := open(t, s)
	clean := func(where string) {
		t.Helper()
		if n := Get[int](tab,
			`document.querySelectorAll(".evil, img, [onerror], a[href^='javascript']").length`); n != 0 {
			t.Errorf("%s: %d elements came of what a pod said", where, n)
		}
		if title := Get[string](tab, "document.title"); strings.Contains(title, "taken") {
			t.Errorf("%s: a script of a pod's has run", where)
		}
	}
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("web")
	clean("the list")
	tab.Click("web")
	tab.Sees("Why it is not ready", "<img class=evil")
	clean("the pod")
	tab.View("pod/logs", s, "web", "container", "front", "previous", "1")
	tab.Sees("<img class=evil", "<b class=evil>bad</b>")
	tab.ClickOn(`document.querySelector(".log-row")`)
	tab.Until("show the whole line",
		`document.querySelector(".log-whole pre")?.innerText.includes("<script class=evil>")`)
	clean("the log")
	tab.Go("/ui/pods?namespace=" + s.Namespace + "&filter=" + `%3Cimg%20class%3Devil%20src%3Dx%3E`)
	tab.Sees("No pod fits the filter")
	clean("a filter")
	tab.View("pod/shell", s, "web", "container", "back")
	tab.Click("Shell in back")
	tab.Until("have a shell", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Keys(`printf '%s\033]0;<img class=evil>\007\n' "<img class=evil$((1))>"` + "\r")
	tab.Prints("<img class=evil1>")
	clean("a shell")
	tab.View("pod/files", s, "web", "container", "back", "path", "/srv")
	tab.Sees(evilName, evilName+".d/", "link")
	clean("a folder")
	tab.Click(evilName)
	tab.Until("show what is in it", `document.querySelector(".file-text")?.innerText.includes("<script class=evil>")`)
	clean("a file")
	tab.View("pod/files", s, "web", "container", "back", "path", "/srv", "show", "changed")
	tab.Sees("were looked at", evilName)
	clean("what changed")
	tab.View("pod/files", s, "web", "container", "back", "path", "/srv", "with", "front")
	tab.Sees(evilName, "only in back")
	clean("a comparison")
	tab.View("pod/yaml", s, "web")
	tab.Until("show YAML", yamlText+`?.includes("<script class=evil>")`)
	clean("YAML")
	visit(s, "web", "echo", evil)
	tab.Go("/ui/record?namespace=" + s.Namespace)
	tab.Sees("echo <img class=evil")
	tab.ClickOn(`[...` + recordLines + `].find((e) => e.innerText.includes("echo <img"))`)
	tab.Until("tell it in full", `document.querySelector(".log-whole")?.innerText.includes("<script class=evil>")`)
	clean("the record")
}
