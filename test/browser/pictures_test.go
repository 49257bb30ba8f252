// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/wherryproject/wherry/test/e2e"
)

// TestPictures leaves the pictures that the guide shows, of pods as people have them.
func TestPictures(t *testing.T) {
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("no pictures are asked for (SCREENSHOTS=folder)")
	}
	s := space(t)
	proxy := e2e.Sidecar(e2e.Named("proxy", e2e.Sh("echo listening on :8443; "+e2e.Idle)))
	speaks := `i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo "{\"level\":\"info\",\"msg\":\"GET /orders\",\"status\":200,\"ms\":$((i%7+2))}"; usleep 40000; done
		echo '{"level":"warn","msg":"slow query","table":"orders","ms":812}'; echo '{"level":"error","msg":"connection to db lost","retry":"1s"}'; ` + e2e.Idle
	s.Create(e2e.WithInit(e2e.NewPod("shop", e2e.Named("web", e2e.Sh(speaks))),
		e2e.Named("migrate", e2e.Sh("usleep 900000; echo migrated")), proxy))
	s.Create(e2e.NewPod("mailer",
		e2e.Named("worker",
			e2e.Sh("echo starting; usleep 300000; echo 'no route to smtp.example' | tee /dev/termination-log; exit 3"))))
	for _, name := range []string{"api-0", "api-1", "cache"} {
		s.Create(e2e.NewPod(name, e2e.Named("main", e2e.Sh(e2e.Idle))))
		s.WaitReady(name)
	}
	big := e2e.NewPod("report", e2e.Named("main", e2e.Tool("idle")))
	big.Spec.Containers[0].Image = "registry.invalid/report:7"
	s.Create(big)
	s.WaitReady("shop")
	s.WaitRestarts("mailer", "worker", 1)
	s.WaitWaiting("mailer", "worker", "CrashLoopBackOff")
	tab := open(t, s)
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("CrashLoopBackOff", "shop")
	tab.Picture("pods")
	tab.View("pod", s, "shop")
	tab.Until("show its life", `document.querySelectorAll(".life .bar").length > 6`)
	tab.Picture("life")
	tab.View("pod", s, "mailer")
	tab.Sees("Why it is not ready", "no route to smtp.example")
	tab.Until("show its life", `document.querySelectorAll(".life .bar").length > 4`)
	tab.Picture("why")
	tab.View("pod/logs", s, "shop")
	tab.Sees("connection to db lost")
	tab.Keys("/orders")
	tab.Until("mark what was searched for", `document.querySelector(".log-row mark")`)
	tab.Picture("logs")
	tab.View("pod/shell", s, "mailer")
	tab.Click("Shell with all containers' files")
	tab.Until("have a shell", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Prints("mailer:/#")
	tab.Keys("ls /c /c/worker; cat /c/worker/etc/passwd\r")
	tab.Prints("root:x:0:0")
	tab.Picture("shell")
	tab.View("pod/files", s, "mailer", "path", "/etc")
	tab.Sees("passwd")
	tab.Picture("files")
	s.Kubectl("exec", "cache", "--", "true")
	visit(s, "shop", "ls", "/c/web/etc")
	tab.Go("/ui/record?namespace=" + s.Namespace)
	tab.Sees("ls /c/web/etc", "exec by")
	tab.Picture("record")
	tab.Go("/ui/nodes")
	tab.Until("have figures of some time",
		`document.querySelectorAll(".chart canvas").length === 3 && performance.now() > 42_000`)
	tab.Do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("button")].find((b) => b.innerText === "Auto").click()`))
	tab.Click("Light")
	tab.Until("be dark", `document.getAnimations().length === 0 && document.body.innerText.includes("Dark")`)
	tab.Picture("nodes")
}

// Picture leaves a picture of the page in the folder $SCREENSHOTS, in the 256 colours that it has most of: they are
// kept in the repository.
func (tab *Tab) Picture(name string) {
	tab.T.Helper()
	whole, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		tab.T.Fatal(err)
	}
	seen, err := png.Decode(bytes.NewReader(whole))
	if err != nil {
		tab.T.Fatal(err)
	}
	out := image.NewPaletted(seen.Bounds(), commonest(seen))
	draw.Draw(out, out.Bounds(), seen, image.Point{}, draw.Src)
	f, err := os.Create(filepath.Join(os.Getenv("SCREENSHOTS"), name+".png"))
	if err != nil {
		tab.T.Fatal(err)
	}
	defer f.Close()
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, out); err != nil {
		tab.T.Fatal(err)
	}
}

// commonest are the colours that a picture has most of.
func commonest(m image.Image) color.Palette {
	count := map[color.Color]int{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			count[m.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	return all[:min(len(all), 256)]
}
