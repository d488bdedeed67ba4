# Runs in the probed ruby. It reads the request from descriptor 3, and what is proven goes out on descriptor 4, marked with
# a nonce that no module sees.
lambda do
  request = IO.for_fd(3, "rb", autoclose: false).read.split("\0", -1)
  nonce, count = request[0], request[1].to_i
  path, names = request[2, count], request[(2 + count)..-1]
  [path, names].each { |l| l.each { |s| s.force_encoding(Encoding::UTF_8) } }
  out = IO.for_fd(4, "wb", autoclose: false)
  out.sync = true
  [3, 4].each { |fd| IO.for_fd(fd, autoclose: false).close_on_exec = true }
  me = Process.pid
  leave = Process.method(:exit!)

  say = lambda do |text|
    leave.call(1) if Process.pid != me # a fork made by a module: only the first process may speak
    out.write("#{nonce} #{text}\n".b)
  end
  fail_at = lambda do |i, e|
    begin
      STDERR.puts(e.full_message(highlight: false))
      STDERR.flush
    rescue Exception
      nil
    end
    text = "#{e.class}: #{e.message}".b[0, 4096]
    say.call("fail #{i} " + text.gsub("\\") { "\\\\" }.gsub("\n") { "\\n" })
    leave.call(1)
  end
  # The program's own file is never run: it has to compile, and what it requires by a literal name has to load.
  check = lambda do |file|
    source = File.binread(file).force_encoding(Encoding::UTF_8)
    RubyVM::InstructionSequence.compile(source, file, file) if defined?(RubyVM::InstructionSequence)
    source.split(/^__END__$/, 2)[0].each_line do |line|
      next if line =~ /\brescue\b/
      if line =~ /^\s*require_relative[\s(]+(["'])([^"'#]+)\1/
        require(File.expand_path($2, File.dirname(file)))
      elsif line =~ /^\s*require[\s(]+(["'])([^"'#]+)\1/
        require($2)
      end
    end
  end

  say.call("up")
  $LOAD_PATH.unshift(*path)
  names.each_with_index do |name, i|
    say.call("load #{i}")
    begin
      name.start_with?("main:") ? check.call(name[5..-1]) : require(name)
    rescue Exception => e # also an exit: a module that ends the program did not load
      fail_at.call(i, e)
    end
  end
  say.call("done")
  leave.call(0) # at once: exit handlers and threads of the modules are no part of the question
end.call
