// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestThreeTierApp runs examples/three-tier as its guide does (WL-02, WL-03, WL-05, WL-12, WL-15, WL-19): a page, an
// API with a sidecar, PostgreSQL in a StatefulSet. What was written is there after the database's pod, the server and
// the machine have ended; a backup puts back what was lost; the page is answered while the server is away; the API gets
// more pods under load, and gives them back.
func TestThreeTierApp(t *testing.T) {
	t.Parallel()
	for _, image := range []string{"notes", "postgres"} {
		if _, err := os.Stat("../../bin/images/" + image + ".tar"); err != nil {
			t.Skipf("the image of %s is not there, make images-three-tier makes it where Debian's packages can be had: %v", image, err)
		}
	}
	needBusybox(t)
	k := kitOn(t, own(t, ServerOptions{Args: []string{throughFullDisks}}))
	if out, err := k.Wherry(k.ctx(), "image", "import", "../../bin/images/notes.tar",
		"../../bin/images/postgres.tar").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile("../../examples/three-tier/app.yaml")
	k.must(err)
	const port = "30087" // which no other test asks for
	app := strings.NewReplacer("nodePort: 30080", "nodePort: "+port, "stabilizationWindowSeconds: 30",
		"stabilizationWindowSeconds: 0").Replace(string(text))
	k.objects(app)
	k.Kubectl("rollout", "status", "statefulset/db", "deployment/api", "deployment/web", "--timeout=90s")
	page := "http://127.0.0.1:" + port + "/"
	add(k, page, "first")
	k.shown(page, "first")

	for app, want := range map[string]string{"backup": "open", "web": "shut"} { // the policies
		k.up("metadata: {name: as-" + app + ", labels: {app: " + app +
			"}}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, command: [sh, -c, IDLE]}]}")
		k.says("as-"+app, "c", "nc -w 3 db 5432 < /dev/null && echo open || echo shut", want)
		k.Kubectl("delete", "pod", "as-"+app, "--wait=false")
	}

	k.Kubectl("delete", "pod", "db-0")
	k.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	k.shown(page, "first")

	k.Kubectl("create", "job", "--from=cronjob/backup", "now")
	k.Kubectl("wait", "--for=condition=complete", "job/now", "--timeout=60s")
	k.sql("DROP TABLE notes")
	stop := k.probing() // at each moment of the restore
	k.Kubectl("create", "-f", "../../examples/three-tier/restore.yaml")
	k.shown(page, "first")
	stop()

	k.Server.Kill() // nobody notices
	k.shown(page, "first")
	k.again()
	add(k, page, "second")
	stop = k.load("http://" + strings.TrimSpace(k.Kubectl("get", "service", "api", "-o",
		"jsonpath={.spec.clusterIP}").Out) + ":8080/busy?ms=900")
	k.Kubectl("wait", "hpa/api", "--for=jsonpath={.status.desiredReplicas}=3", "--timeout=120s")
	stop()

	k.must(k.Server.PowerOff())
	k.again()
	k.shown(page, "first", "second")
	k.Kubectl("wait", "deployment/api", "--for=jsonpath={.spec.replicas}=1", "--timeout=120s")
}

// probing does until stop is called, all the time, what the API does every two seconds when its probe asks it: it makes
// the table if there is none.
func (k *kit) probing() (stop func()) {
	done := make(chan error, 1)
	probe := k.KubectlCommand("exec", "db-0", "--", "sh", "-c", `PGPASSWORD=$POSTGRES_PASSWORD PGOPTIONS="-c client_min_messages=warning" psql -q -h 127.0.0.1 -U notes -c '
DO $$ BEGIN
  WHILE to_regclass($q$enough$q$) IS NULL LOOP
    CREATE TABLE IF NOT EXISTS notes (id serial PRIMARY KEY, text varchar(200) NOT NULL, at timestamptz NOT NULL DEFAULT now());
    COMMIT;
    PERFORM pg_sleep(0.001);
  END LOOP;
END $$' notes`)
	go func() {
		defer probe.cancel()
		out, err := probe.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		done <- err
	}()
	return func() {
		k.t.Helper()
		k.sql("CREATE TABLE enough ()")
		k.must(<-done)
	}
}

// sql runs a statement in the database.
func (k *kit) sql(statement string) {
	k.t.Helper()
	k.Kubectl("exec", "db-0", "--", "sh", "-c", "PGPASSWORD=$POSTGRES_PASSWORD psql -q -h 127.0.0.1 -U notes -c '"+
		statement+"' notes")
}

// page asks for the page once.
func (k *kit) page(address string) (string, error) {
	req, err := http.NewRequestWithContext(k.ctx(), http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(resp.Status))
	}
	return string(text), err
}

// add adds a note by the page's form.
func add(k *kit, address, note string) {
	k.t.Helper()
	resp, err := (&http.Client{Timeout: Timeout}).PostForm(address, url.Values{"text": {note}})
	k.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		k.t.Fatalf("adding a note: %s", resp.Status)
	}
}

// shown waits until the page shows the notes.
func (k *kit) shown(address string, notes ...string) {
	k.t.Helper()
	var text string
	var err error
	for began := time.Now(); time.Since(began) < Timeout; time.Sleep(100 * time.Millisecond) { // nobody tells of a page
		text, err = k.page(address)
		all := err == nil
		for _, note := range notes {
			all = all && strings.Contains(text, "<li>"+note+"</li>")
		}
		if all {
			return
		}
	}
	k.t.Fatalf("the page does not show %q: %v\n%s", notes, err, text)
}

// load asks for something again and again, two at a time, until stop is called.
func (k *kit) load(address string) (stop func()) {
	ctx, cancel := context.WithCancel(k.ctx())
	// Each request is a connection of its own, which leads to any of the pods; what is not answered, as of a pod that has gone, is asked again.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var loops sync.WaitGroup
	var asked, failed atomic.Int64
	for range 2 {
		loops.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
				if err != nil {
					return
				}
				asked.Add(1)
				if resp, err := client.Do(req); err == nil {
					resp.Body.Close()
				} else if failed.Add(1) < 4 && ctx.Err() == nil {
					k.t.Logf("load: %v", err)
				}
			}
		})
	}
	return func() {
		cancel()
		loops.Wait()
		k.t.Logf("load: %d requests, %d without an answer", asked.Load(), failed.Load())
	}
}
