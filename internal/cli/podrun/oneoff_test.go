// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var here = Here{
	Folder: "/home/ann",
	Getenv: func(name string) (string, bool) { return "from here", name == "SET" },
	ReadFile: func(name string) ([]byte, error) {
		if name != "vars" {
			return nil, os.ErrNotExist
		}
		return []byte("# the usual\nA=1\n\nSET\nUNSET\nB=x=y\n"), nil
	},
}

// What docker's flags say becomes a pod of one container.
func TestOneOff(t *testing.T) {
	cases := map[string]struct {
		flags OneOff
		want  []string
	}{
		"image alone": {OneOff{Image: "busybox:1.37"}, []string{"image: busybox:1.37", "imagePullPolicy: IfNotPresent", "name: busybox\n", "restartPolicy: Never", "generateName: busybox-"}},
		"command":     {OneOff{Image: "a/my_app.v2", Command: []string{"sh", "-c", "echo $$ $(date) $HOME"}, Name: "job"}, []string{"name: my-app-v2\n", "- echo $$$$ $$(date) $$HOME", "name: job\n"}},
		"entry point": {OneOff{Image: "a", Entrypoint: "/bin/sh", Workdir: "/src", Pull: "always"}, []string{"command:\n    - /bin/sh", "workingDir: /src", "imagePullPolicy: Always"}},
		"user":        {OneOff{Image: "a", User: "1000:20"}, []string{"runAsUser: 1000", "runAsGroup: 20"}},
		"terminal":    {OneOff{Image: "a", Stdin: true, TTY: true}, []string{"stdin: true", "stdinOnce: true", "tty: true"}},
		"environment": {OneOff{Image: "a", EnvFiles: []string{"vars"}, Env: []string{"A=2", "SET", "UNSET", "P=$(x)"}},
			[]string{"- name: A\n      value: \"2\"\n    - name: SET\n      value: from here\n    - name: B\n      value: x=y\n    - name: P\n      value: $$(x)\n    image"}},
		"volumes": {OneOff{Image: "a", Volumes: []string{"/etc:/host/etc:ro", "./src:/src", ".:/all:rw", "/cache"}},
			[]string{"mountPath: /host/etc\n      name: v0\n      readOnly: true", "path: /etc", "path: /home/ann/src", "path: /home/ann\n", "mountPath: /cache\n      name: v3", "emptyDir: {}\n    name: v3"}},
		"ports": {OneOff{Image: "a", Ports: []string{"8080:80", "127.0.0.1:53:53/udp", "[::1]:81:80"}},
			[]string{"containerPort: 80\n      hostPort: 8080\n      protocol: TCP", "containerPort: 53\n      hostIP: 127.0.0.1\n      hostPort: 53\n      protocol: UDP", "hostIP: ::1\n      hostPort: 81"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := c.flags.Object(here)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(o.Object.(*corev1.Pod))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

// What cannot be meant is refused, with what to write.
func TestOneOffRefusals(t *testing.T) {
	cases := map[string]struct {
		flags OneOff
		want  string
	}{
		"image":            {OneOff{Image: "Not/An:Image!"}, "is not an image name"},
		"pull":             {OneOff{Image: "a", Pull: "sometimes"}, "always, missing or never"},
		"user":             {OneOff{Image: "a", User: "bob"}, "--user bob: use numeric IDs"},
		"group":            {OneOff{Image: "a", User: "1:staff"}, "use numeric IDs"},
		"env":              {OneOff{Image: "a", Env: []string{"=x"}}, "has no name"},
		"env file":         {OneOff{Image: "a", EnvFiles: []string{"gone"}}, "--env-file: file does not exist"},
		"volume by name":   {OneOff{Image: "a", Volumes: []string{"data:/data"}}, "-v ./data:/data"},
		"volume to where":  {OneOff{Image: "a", Volumes: []string{"./x:y"}}, "an absolute PATH"},
		"volume's end":     {OneOff{Image: "a", Volumes: []string{"/x:/y:Z"}}, `ro or rw, not "Z"`},
		"port alone":       {OneOff{Image: "a", Ports: []string{"80"}}, "-p 80: write HOST:CONTAINER"},
		"port's number":    {OneOff{Image: "a", Ports: []string{"99999:80"}}, "write HOST:CONTAINER"},
		"port's protocol":  {OneOff{Image: "a", Ports: []string{"80:80/icmp"}}, "write HOST:CONTAINER"},
		"a range of ports": {OneOff{Image: "a", Ports: []string{"80-90:80-90"}}, "write HOST:CONTAINER"},
	}
	for name, c := range cases {
		if _, err := c.flags.Object(here); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A refusal of the server's names the command line, which has no line numbers.
func TestPlaceOfACommandLine(t *testing.T) {
	o, err := OneOff{Image: "a"}.Object(here)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(refused(o, errors.New("no"))); got != "wherry run a: no" {
		t.Errorf("got %q", got)
	}
}
