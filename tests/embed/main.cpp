// The program of tests/embed_test.py.
int serve(int argc, char** argv);

int main(int argc, char** argv) {
  return serve(argc, argv);
}
