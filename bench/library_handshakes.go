// The server's CPU time of a handshake in memory with Go's crypto/tls, in microseconds: the mean of half a second of
// handshakes. The arguments are a folder with chain.pem and key.pem, the version (tls1.2 or tls1.3), and "full" or
// "resumed", by ticket.
package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

const (
	wholeUs    = 500_000
	processCPU = 2 // CLOCK_PROCESS_CPUTIME_ID: the garbage collector runs on other threads
)

func usedUs() float64 {
	var used syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&used)), 0); err != 0 {
		log.Fatal(err)
	}
	return float64(used.Nano()) / 1000
}

// A clock that runs while a side works: with one processor for all goroutines, the other side works only while this
// one waits.
type clock struct{ begun, took float64 }

func (c *clock) start() { c.begun = usedUs() }
func (c *clock) stop()  { c.took += usedUs() - c.begun }

// One end of a connection in memory.
type end struct {
	in, out chan []byte
	left    []byte
	timed   *clock
}

func (e *end) Read(into []byte) (int, error) {
	if len(e.left) == 0 {
		if e.timed != nil {
			e.timed.stop()
		}
		flight, open := <-e.in
		if e.timed != nil {
			e.timed.start()
		}
		if !open {
			return 0, io.EOF
		}
		e.left = flight
	}
	count := copy(into, e.left)
	e.left = e.left[count:]
	return count, nil
}

func (e *end) Write(flight []byte) (int, error) {
	e.out <- append([]byte(nil), flight...)
	return len(flight), nil
}

func (e *end) Close() error                     { return nil }
func (e *end) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (e *end) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (e *end) SetDeadline(time.Time) error      { return nil }
func (e *end) SetReadDeadline(time.Time) error  { return nil }
func (e *end) SetWriteDeadline(time.Time) error { return nil }

// shake performs a handshake and returns the server's microseconds. The client reads to the end, and so has the ticket.
func shake(client, server *tls.Config, resumed bool) float64 {
	timed := &clock{}
	there, back := make(chan []byte, 16), make(chan []byte, 16)
	done := make(chan struct{})
	go func() {
		conn := tls.Server(&end{in: there, out: back, timed: timed}, server)
		timed.start()
		if err := conn.Handshake(); err != nil {
			log.Fatal(err)
		}
		timed.stop()
		if conn.ConnectionState().DidResume != resumed {
			log.Fatal("resumed: ", !resumed)
		}
		close(back)
		close(done)
	}()
	conn := tls.Client(&end{in: back, out: there}, client)
	if err := conn.Handshake(); err != nil {
		log.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		log.Fatal(err)
	}
	<-done
	return timed.took
}

func main() {
	runtime.GOMAXPROCS(1)
	folder, version, resumed := os.Args[1], map[string]uint16{"tls1.2": tls.VersionTLS12, "tls1.3": tls.VersionTLS13}[os.Args[2]], os.Args[3] == "resumed"
	pair, err := tls.LoadX509KeyPair(folder+"/chain.pem", folder+"/key.pem")
	if err != nil {
		log.Fatal(err)
	}
	server := &tls.Config{Certificates: []tls.Certificate{pair}, CurvePreferences: []tls.CurveID{tls.X25519}, MinVersion: tls.VersionTLS12}
	client := &tls.Config{
		CurvePreferences:   []tls.CurveID{tls.X25519},
		MinVersion:         version,
		MaxVersion:         version,
		CipherSuites:       []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		InsecureSkipVerify: true, // only the server is timed
		ServerName:         "server",
	}
	if resumed {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		shake(client, server, false)
	}
	took, count := 0.0, 0
	for begun := usedUs(); usedUs()-begun < wholeUs; count++ {
		took += shake(client, server, resumed)
	}
	fmt.Println(took / float64(count))
}
