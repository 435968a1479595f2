// A server of Go's crypto/tls that only performs handshakes, for the benchmark "capacity". Each argument is
// ADDRESS:PORT=FOLDER; the folder contains chain.pem and key.pem.
package main

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"strings"
)

func main() {
	runtime.GOMAXPROCS(1)
	for _, argument := range os.Args[1:] {
		address, folder, _ := strings.Cut(argument, "=")
		pair, err := tls.LoadX509KeyPair(folder+"/chain.pem", folder+"/key.pem")
		if err != nil {
			log.Fatal(err)
		}
		listener, err := tls.Listen("tcp", address, &tls.Config{
			Certificates:     []tls.Certificate{pair},
			CurvePreferences: []tls.CurveID{tls.X25519MLKEM768, tls.X25519},
			MinVersion:       tls.VersionTLS12,
		})
		if err != nil {
			log.Fatal(err)
		}
		go serve(listener)
	}
	select {}
}

func serve(listener net.Listener) {
	for {
		peer, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer peer.Close()
			io.Copy(io.Discard, peer) // the first read shakes hands; the client closes
		}()
	}
}
